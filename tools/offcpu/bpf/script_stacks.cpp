// SPDX-License-Identifier: MIT
#include "offcpu/bpf/script_stacks.h"

#include <algorithm>

#include "recording/stream/synthesize.h"

namespace pe::offcpu {

const languages::ScriptStack& ScriptStacks::named(std::uint32_t pid,
                                                  const unwind::StackOfKernel& stack,
                                                  std::uint64_t time_ns) {
  time_ns = std::max(time_ns, written_until_ns_);
  recording::Synthesizer synthesizer(
      layout_, [&](const stream::Record& record) { on_function_(time_ns, record); });
  synthesizer.set_time(time_ns);
  return reader_.name(pid, recording::script_frames(stack.script, !stack.is_script_cut),
                      [&](std::uint32_t number, const stream::ScriptFunction& function) {
                        synthesizer.script(static_cast<pid_t>(pid), number, function);
                      });
}

void ScriptStacks::merge(std::uint32_t pid, const unwind::StackOfKernel& stack,
                         std::uint64_t time_ns, Stack& into) {
  if (stack.script.empty())
    return;
  const languages::ScriptStack& script = named(pid, stack, time_ns);
  if (script.empty())
    return;
  const bool is_complete = (into.misc & stream::kMiscComplete) != 0;
  const auto merged = merger_.merge(into.chain, is_complete, script);
  into.chain.assign(merged.begin(), merged.end());
  if (script.is_complete)
    return;
  merger_.count_cut();
  if (is_complete)
    into.misc ^= stream::kMiscWalked;
}

void ScriptStacks::describe(Closing& closing) const {
  reader_.describe(closing);
  merger_.describe(closing);
  publisher_.describe(closing);
}

}  // namespace pe::offcpu
