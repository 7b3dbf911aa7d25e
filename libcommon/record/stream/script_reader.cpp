// SPDX-License-Identifier: MIT
#include "record/stream/script_reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/file_name.h"
#include "base/plural.h"
#include "objects/mapped_image.h"
#include "stream/proc/memory.h"

namespace pe::record {
namespace {

constexpr const char* kUnreadable = "[python: unreadable]";

}  // namespace

bool may_be_interpreter(std::string_view path) {
  return file_name(path).find("python") != std::string_view::npos;
}

void ScriptReader::follow(const stream::History& history) {
  if (const auto& ended = history.ended_thread(); ended && ended->tid == ended->pid)
    forget(ended->pid);
  const auto& change = history.mapping_change();
  if (!change)
    return;
  const stream::Mapping* mapping = nullptr;
  if (change->mapped == nullptr) {  // another program, or a new process
    forget(change->pid);
    if (change->forked_from == 0 || !processes_.contains(change->forked_from))
      return;
    for (const auto& [start, known] : history.processes().space(change->pid)->all())
      if (may_be_interpreter(known.file->path))
        open(change->pid, known);
    return;
  }
  if (may_be_interpreter(change->mapped->path))
    mapping = history.processes().find(change->pid, change->start);
  if (mapping != nullptr)
    open(change->pid, *mapping);
}

void ScriptReader::forget(std::uint32_t pid) {
  if (processes_.erase(pid) > 0)
    changed_.insert(pid);
}

runtimes::PythonProcess* ScriptReader::process(std::uint32_t pid) {
  const auto found = processes_.find(pid);
  return found != processes_.end() ? &found->second.python : nullptr;
}

const ScriptReader::Binary& ScriptReader::binary_of(std::uint32_t pid,
                                                    const stream::Mapping& mapping) {
  const auto [item, is_new] = binaries_.try_emplace(mapping.file);
  if (!is_new)
    return item->second;
  const auto opened = objects::open_mapped_image(static_cast<pid_t>(pid), mapping,
                                                 objects::FileMatch::kSameInode, nullptr);
  if (const auto* image = std::get_if<objects::Image>(&opened))
    item->second = {runtimes::find_python(*image),
                    {image->segments().begin(), image->segments().end()}};
  return item->second;
}

void ScriptReader::open(std::uint32_t pid, const stream::Mapping& mapping) {
  const Binary& binary = binary_of(pid, mapping);
  const auto svma = binary.python
                        ? objects::svma_of_code_mapping(binary.segments, mapping.file_offset)
                        : std::nullopt;
  if (!svma || processes_.contains(pid))
    return;
  auto opened = runtimes::PythonProcess::open(
      [pid](std::uint64_t avma, std::span<std::byte> into) {
        return stream::read_memory(static_cast<pid_t>(pid), avma, into);
      },
      *binary.python, mapping.start - *svma);
  if (auto* python = std::get_if<runtimes::PythonProcess>(&opened)) {
    processes_.emplace(pid, Process{.python = std::move(*python)});
    changed_.insert(pid);
    return;
  }
  if (const std::string& why = std::get<std::string>(opened); !why.empty())
    unknown_.insert(why);
}

const ScriptStack& ScriptReader::name(std::uint32_t pid, const runtimes::PythonStack& stack,
                                      const OnFunction& on_function) {
  stack_.loop.clear();
  stack_.words.clear();
  stack_.is_complete = stack.is_complete;
  const auto found = processes_.find(pid);
  if (found == processes_.end() || stack.frames.empty())
    return stack_;
  Process& process = found->second;
  for (const auto& [start, end] : process.python.loop())
    stack_.loop.push_back({start, end});
  process.python.begin_names();
  for (const runtimes::PythonFrame& frame : stack.frames) {
    const ScriptWord mark = frame.ends_call ? kEndsCall : 0;
    const bool is_frame = frame.code != runtimes::kNoCode;
    const auto address =
        process.python.address_of(frame, [&](const stream::ScriptFunction& function) {
          on_function(next_number_, function);
          return next_number_++;
        });
    if (is_frame && !address && !std::exchange(process.has_unreadable, true))
      on_function(0, {.name = kUnreadable, .file = {}, .line = 0});
    frames_ += is_frame ? 1 : 0;
    unreadable_ += is_frame && !address ? 1 : 0;
    stack_.words.push_back(mark | (is_frame ? address.value_or(stream::script_address(0)) : 0));
  }
  return stack_;
}

void ScriptReader::describe(Closing& closing) const {
  if (frames_ > 0)
    closing.detail(
        fmt::format("{} of Python, {} unreadable", plural(frames_, "frame"), unreadable_));
  for (const std::string& unknown : unknown_)
    closing.doubt(unknown + " has functions without names",
                  "Python 3.11, 3.12 and 3.13 have names");
}

}  // namespace pe::record
