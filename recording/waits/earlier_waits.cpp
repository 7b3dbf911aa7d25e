// SPDX-License-Identifier: MIT
#include "recording/waits/earlier_waits.h"

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "base/clock.h"

namespace pe::waits {
namespace {

/// The usual depth.  The rest of a deeper stack is read when it is held.
constexpr std::size_t kCopyBytes = 8192;
constexpr std::size_t kStackPointer = 7;

/// Returns whether a process may pay for a copy, and pays.
bool pay(std::uint32_t pid, Budget& budget) {
  const std::uint64_t now_ns = monotonic_ns();
  if (!budget.may_spend(pid, Resource::kReadBytes, kCopyBytes, now_ns)) {
    budget.count_loss(pid, Resource::kReadBytes, now_ns);
    return false;
  }
  budget.spend(pid, Resource::kReadBytes, kCopyBytes, now_ns);
  return true;
}

}  // namespace

void hold_earlier(const unwind::EarlierWait& wait, const unwind::StackOfKernel& kernel_stack,
                  languages::ScriptReader& scripts, Budget& budget, PassedSwitches& passed) {
  const unwind::SumKey& key = wait.outstanding.key;
  if (wait.has_user_stack == 0)
    return;
  const auto tid = static_cast<pid_t>(key.tid);
  std::array<std::byte, kCopyBytes> copy{};
  std::size_t copied = 0;
  LateCopy how;
  if (pay(key.tgid, budget)) {
    copied = scripts.memory().read(tid, wait.registers[kStackPointer], copy);
    if (auto* const script = scripts.process(key.tgid))
      how.script = script->read_stack(
          tid, {.thread_pointer = wait.thread_pointer, .is_first = key.tid == key.tgid});
  }
  unwind::SampleRecord record{};
  record.kind = unwind::kRecordPassedOn;
  record.time_ns = wait.outstanding.since_ns;
  record.tgid = key.tgid;
  record.tid = key.tid;
  how.at_ns = monotonic_ns();
  passed.hold({.record = record,
               .stack = {},
               .registers = wait.registers,
               .memory = std::span(std::as_const(copy)).first(copied)},
              kernel_stack, std::move(how));
}

void keep_within_budget(std::uint32_t pid, Budget& budget, Stack& stack) {
  constexpr std::size_t kAlways = 128;  // frames
  if (stack.chain.size() <= kAlways)
    return;
  const std::uint64_t now_ns = monotonic_ns();
  const auto bytes = static_cast<double>(text_of(stack.chain).size());
  if (budget.may_spend(pid, Resource::kKeptBytes, bytes, now_ns))
    return budget.spend(pid, Resource::kKeptBytes, bytes, now_ns);
  budget.count_loss(pid, Resource::kKeptBytes, now_ns);
  stack.chain.resize(kAlways);
  stack.chain.shrink_to_fit();
  if ((stack.misc & stream::kMiscComplete) != 0)
    stack.misc ^= stream::kMiscWalked;
}

}  // namespace pe::waits
