// Makes stacks of the numbers that the kernel's programs give them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "offcpu/bpf/kernel_stack_counts.h"
#include "offcpu/chain_writer.h"
#include "offcpu/wait_tracker.h"
#include "unwind/kernel/bpf_object.h"

namespace pe::offcpu {

class StackReader {
 public:
  /// `object` must outlive this.  With `user_only`, wakers have no part in the kernel.
  StackReader(unwind::BpfObject& object, bool user_only)
      : object_(object), is_user_only_(user_only) {}

  [[nodiscard]] Stack stack_of(const unwind::SumKey& key);
  /// Returns the wakers with a number, up to an interrupt, which has pid 0.
  [[nodiscard]] std::vector<WokenBy> wakers(std::uint32_t number);
  /// Counts `times` waits on a program's stack for counts(); 0 means no stack.
  void count(std::uint32_t user_stack, std::uint64_t times);
  [[nodiscard]] const KernelStackCounts& counts() const noexcept { return counts_; }
  ChainWriter& chains() noexcept { return chains_; }

 private:
  [[nodiscard]] WokenBy waker(const unwind::Waker& waker);
  [[nodiscard]] Stack with_user_part(std::vector<std::uint64_t> kernel_part,
                                     std::uint32_t user_stack) const;

  unwind::BpfObject& object_;
  bool is_user_only_;
  ChainWriter chains_;
  KernelStackCounts counts_;
};

}  // namespace pe::offcpu
