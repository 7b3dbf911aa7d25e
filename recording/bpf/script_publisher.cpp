// SPDX-License-Identifier: MIT
#include "recording/bpf/script_publisher.h"

#include <sys/sysmacros.h>
#include <sys/types.h>

#include "base/text.h"
#include "languages/common/interpreter.h"
#include "recording/signal/script_words.h"

namespace pe::recording {
namespace {

/// Returns a device's number in the kernel's form (include/linux/kdev_t.h).
std::uint64_t kernel_device(dev_t device) {
  constexpr unsigned kMinorBits = 20;
  return std::uint64_t{gnu_dev_major(device)} << kMinorBits | gnu_dev_minor(device);
}

}  // namespace

languages::ScriptFrames script_frames(std::span<const std::uint64_t> words, bool is_complete) {
  languages::ScriptFrames stack{.frames = {}, .is_complete = is_complete};
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    stack.frames.push_back(inprocess::script_frame({words[i], words[i + 1]}));
  return stack;
}

languages::ScriptReader::Found found_script(const unwind::SampleRecord& record) {
  return {.pid = record.tgid,
          .parent = static_cast<std::uint32_t>(record.period),
          .file = record.cookie,
          .runtime = record.ip,
          .time_ns = record.time_ns};
}

void ScriptPublisher::publish(languages::ScriptReader& reader, unwind::BpfObject& object) {
  for (const languages::ScriptReader::File& file : reader.take_files())
    if (languages::kernel_reads(file.layout))
      object.add_script_file({.inode = file.inode, .device = kernel_device(file.device)},
                             {.script = {.runtime = file.runtime,
                                         .parent = 0,
                                         .binary = static_cast<std::uint32_t>(file.number),
                                         .layout = file.layout},
                              .code_svma = file.code,
                              .code_offset = file.code_offset});
  for (const std::uint32_t pid : reader.take_changed())
    publish_process(reader, pid, object);
}

/// Sends the layout of a process's interpreter.
void ScriptPublisher::publish_process(languages::ScriptReader& reader, std::uint32_t pid,
                                      unwind::BpfObject& object) {
  const languages::ScriptProcess* const script = reader.process(pid);
  if (script == nullptr)
    return object.forget_script(pid);
  const unwind::ProcessScript sent{.runtime = script->runtime(),
                                   .parent = 0,
                                   .binary = static_cast<std::uint32_t>(reader.file_of(pid)),
                                   .layout = script->layout()};
  if (!languages::kernel_reads(sent.layout) || !object.set_script(pid, sent))
    ++left_out_;
}

void ScriptPublisher::describe(Closing& closing) const {
  if (left_out_ > 0)
    closing.doubt(plural(left_out_, "process") + " of interpreters without room in the kernel",
                  "record fewer processes, or use --engine ptrace");
}

}  // namespace pe::recording
