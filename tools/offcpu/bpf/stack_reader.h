// Makes stacks of the numbers that the kernel's programs give them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "offcpu/bpf/kernel_stack_counts.h"
#include "offcpu/bpf/script_stacks.h"
#include "offcpu/chain_writer.h"
#include "offcpu/wait_tracker.h"
#include "recording/bpf/bpf_object.h"

namespace pe::offcpu {

class StackReader {
 public:
  /// `object` and `scripts` must outlive this.  With `user_only`, wakers have no part in the
  /// kernel.
  StackReader(unwind::BpfObject& object, ScriptStacks& scripts, bool user_only)
      : object_(object), scripts_(scripts), is_user_only_(user_only) {}

  /// `time_ns` is when the wait ended.
  [[nodiscard]] Stack stack_of(const unwind::SumKey& key, std::uint64_t time_ns);
  /// Returns the stack of the waker with this place among the wakers of a wait, if user space has
  /// walked it; else null.
  using Walked = std::function<const Stack*(std::size_t place, const unwind::Waker&)>;
  /// Returns the wakers of `waits` waits with their number, up to an interrupt, which has pid 0.
  [[nodiscard]] std::vector<WokenBy> wakers(std::uint32_t number, std::uint64_t time_ns,
                                            std::uint64_t waits, const Walked& walked = {});
  /// Counts a program's stack `times` times for counts(); 0 means no stack.
  void count(std::uint32_t user_stack, std::uint64_t times);
  [[nodiscard]] const KernelStackCounts& counts() const noexcept { return counts_; }
  ChainWriter& chains() noexcept { return chains_; }

 private:
  [[nodiscard]] WokenBy waker(const unwind::Waker& waker, std::uint64_t time_ns,
                              std::uint64_t waits, const Stack* walked);
  [[nodiscard]] Stack with_user_part(std::vector<std::uint64_t> kernel_part, std::uint32_t pid,
                                     std::uint32_t user_stack, std::uint64_t time_ns);

  unwind::BpfObject& object_;
  ScriptStacks& scripts_;
  bool is_user_only_;
  ChainWriter chains_;
  KernelStackCounts counts_;
};

}  // namespace pe::offcpu
