// SPDX-License-Identifier: MIT
#include "languages/common/process.h"

#include <algorithm>

#include "languages/common/interpreters.h"
#include "languages/common/walk.h"

namespace pe::languages {
namespace {

constexpr std::size_t kMostKnownThreads = 65'536, kMostCodes = 262'144;
/// A server creates the functions of a script again for each request, often at the same addresses.
constexpr std::uint32_t kMostTries = 100;
constexpr std::size_t kMostAncestors = 8;

}  // namespace

std::variant<ScriptProcess, std::string> ScriptProcess::open(Memory memory,
                                                             const ScriptBinary& binary,
                                                             std::uint64_t bias) {
  const Spender::Scope scope(memory.spender());
  if (!memory.pointer(binary.runtime + bias))
    return "";
  auto layout = script_layout(memory, binary, bias);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptProcess(std::move(memory), std::get<ScriptLayout>(layout), binary, bias);
}

ScriptProcess::ScriptProcess(Memory memory, const ScriptLayout& layout, const ScriptBinary& binary,
                             std::uint64_t bias)
    : memory_(std::make_shared<Memory>(std::move(memory))),
      layout_(layout),
      runtime_(binary.runtime + bias),
      kept_(memory_->spender()) {
  for (const auto& [start, end] : binary.loop)
    loop_.push_back({start + bias, end + bias});
}

ScriptProcess ScriptProcess::fork(Memory memory) const {
  ScriptProcess child(
      std::move(memory), layout_,
      {.language = layout_.language, .runtime = runtime_, .version = 0, .loop = loop_}, 0);
  child.ancestors_.push_back(memory_);
  const std::size_t older = std::min(ancestors_.size(), kMostAncestors - 1);
  child.ancestors_.insert(child.ancestors_.end(), ancestors_.begin(),
                          ancestors_.begin() + static_cast<std::ptrdiff_t>(older));
  return child;
}

const ScriptFrames& ScriptProcess::read_stack(pid_t tid, ScriptThread thread) {
  memory_->forget();
  if (threads_.size() >= kMostKnownThreads)
    threads_.clear();
  stack_.frames.clear();
  thread.runtime = runtime_;
  stack_.is_complete =
      walk_script(*memory_, layout_, thread, threads_[tid],
                  [this](const ScriptFrame& frame) { stack_.frames.push_back(frame); });
  return stack_;
}

void ScriptProcess::begin_names() {
  memory_->forget();
  for (const auto& memory : ancestors_)
    memory->forget();
  may_read_.reset();
  if (codes_.size() < kMostCodes && functions_.size() < kMostCodes)
    return;
  codes_.clear();
  functions_.clear();
  kept_.give_back();
}

/// Returns whether code may be read in this sample.
bool ScriptProcess::may_read() {
  if (!may_read_)
    may_read_ = memory_->spender().may_start();
  return *may_read_;
}

std::optional<std::uint64_t> ScriptProcess::address_of(const ScriptFrame& frame,
                                                       const OnNew& on_new) {
  if (frame.code == kNoCode || frame.code == kUnreadableCode)
    return std::nullopt;
  const CodeId id{frame.code, frame.mark};
  const auto known = codes_.find(id);
  Code* code = known != codes_.end() ? &known->second : nullptr;
  if (code == nullptr || (code->address == 0 && !code->is_hidden && code->tries < kMostTries))
    code = read_new(id, frame, on_new);
  if (code == nullptr)
    return std::nullopt;
  if (code->address == 0)
    return code->is_hidden ? std::optional<std::uint64_t>(0) : std::nullopt;
  const std::uint32_t line = code->has_line_places ? frame.place : code->lines.line_at(frame.place);
  // The last address of a range is left for the one that call chains add.
  return code->address +
         std::min<std::uint64_t>(line > code->first_line ? line - code->first_line : 0,
                                 stream::kScriptBytes - 2);
}

/// Reads code that is new, or was unreadable.  Returns null if the budget does not allow it.
ScriptProcess::Code* ScriptProcess::read_new(const CodeId& id, const ScriptFrame& frame,
                                             const OnNew& on_new) {
  constexpr std::size_t kBytesOfNode = 32;
  if (!may_read())
    return nullptr;
  Spender& spender = memory_->spender();
  const Spender::Scope scope(spender);
  Code code = read_code(frame, on_new);
  may_read_ = !spender.has_lost();
  if (code.address == 0 && !code.is_hidden && spender.has_lost())
    return nullptr;
  code.lines.shrink();
  const std::size_t new_bytes =
      codes_.contains(id) ? 0 : sizeof(CodeId) + sizeof(Code) + kBytesOfNode;
  if (!kept_.may_add(new_bytes + code.lines.bytes())) {
    may_read_ = false;
    return nullptr;
  }
  Code& kept = codes_[id];
  code.tries = kept.tries + 1;
  return &(kept = std::move(code));
}

std::optional<ScriptCode> ScriptProcess::find_code(const ScriptFrame& frame) {
  const auto read = interpreter_of(layout_.language).read_code;
  auto code = read(*memory_, layout_, frame);
  for (auto ancestor = ancestors_.begin(); !code && ancestor != ancestors_.end(); ++ancestor)
    code = read(**ancestor, layout_, frame);
  return code;
}

ScriptProcess::Code ScriptProcess::read_code(const ScriptFrame& frame, const OnNew& on_new) {
  auto code = find_code(frame);
  if (!code)
    return {};
  if (code->is_hidden)
    return {.lines = {}, .is_hidden = true};
  const auto [known, is_new] = functions_.try_emplace(stream::script_path(code->function), 0);
  if (is_new) {
    kept_.may_add(known->first.size());
    known->second = stream::script_address(on_new(code->function));
  }
  return {.first_line = code->function.line,
          .lines = std::move(code->lines),
          .has_line_places = code->has_line_places,
          .address = known->second};
}

}  // namespace pe::languages
