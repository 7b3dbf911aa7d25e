// SPDX-License-Identifier: MIT
#include "runtimes/python_process.h"

#include <algorithm>

namespace pe::runtimes {
namespace {

constexpr std::size_t kMostKnownThreads = 65'536, kMostCodes = 262'144;
constexpr std::size_t kMostNameCharacters = 1000, kMostFileCharacters = 2000;

}  // namespace

std::variant<PythonProcess, std::string> PythonProcess::open(Memory::Read read,
                                                             const PythonBinary& binary,
                                                             std::uint64_t bias) {
  Memory memory(read);
  const auto version = binary.version ? memory.pointer(*binary.version + bias) : std::nullopt;
  if (binary.version && !version)
    return "";
  auto layout = python_layout(memory, version, binary.runtime + bias);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return PythonProcess(std::move(read), std::get<PythonLayout>(layout), binary, bias);
}

PythonProcess::PythonProcess(Memory::Read read, const PythonLayout& layout,
                             const PythonBinary& binary, std::uint64_t bias)
    : memory_(std::move(read)), layout_(layout), runtime_(binary.runtime + bias) {
  for (const auto& [start, end] : binary.loop)
    loop_.push_back({start + bias, end + bias});
}

const PythonStack& PythonProcess::read_stack(pid_t tid, std::uint64_t thread_pointer) {
  memory_.forget();
  if (threads_.size() >= kMostKnownThreads)
    threads_.clear();
  stack_.frames.clear();
  stack_.is_complete = walk_python_thread(
      memory_, layout_, {.runtime = runtime_, .thread_pointer = thread_pointer}, threads_[tid],
      [this](const PythonFrame& frame) { stack_.frames.push_back(frame); });
  return stack_;
}

void PythonProcess::begin_names() {
  memory_.forget();
  if (codes_.size() >= kMostCodes)
    codes_.clear();
}

std::optional<std::uint64_t> PythonProcess::address_of(const PythonFrame& frame,
                                                       const OnNew& on_new) {
  if (frame.code == kNoCode || frame.code == kUnreadableCode)
    return std::nullopt;
  const CodeId id{frame.code, frame.mark};
  auto known = codes_.find(id);
  if (known == codes_.end())
    known = codes_.emplace(id, read_code(id, on_new)).first;
  const Code& code = known->second;
  if (code.address == 0)
    return std::nullopt;
  const std::uint32_t line = frame.place < layout_.instructions
                                 ? 0
                                 : code.lines.line_at(frame.place - layout_.instructions);
  // The last address of a range is left for the one that call chains add.
  return code.address + std::min<std::uint64_t>(line > code.first_line ? line - code.first_line : 0,
                                                stream::kScriptBytes - 2);
}

PythonProcess::Code PythonProcess::read_code(const CodeId& id, const OnNew& on_new) {
  const auto fields = read_code_fields(memory_, layout_, id.avma);
  if (!fields || code_mark(*fields) != id.mark)
    return {};
  const auto name = read_python_text(memory_, layout_, fields->name, kMostNameCharacters);
  if (!name)
    return {};
  auto file = read_python_text(memory_, layout_, fields->file, kMostFileCharacters);
  const std::uint32_t line = fields->first_line;
  return {.first_line = line,
          .lines = read_line_table(memory_, layout_, *fields),
          .address = stream::script_address(on_new({*name, file.value_or(""), line}))};
}

}  // namespace pe::runtimes
