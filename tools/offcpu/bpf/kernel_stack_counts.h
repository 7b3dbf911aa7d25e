// Describes how the stacks that the kernel has walked ended, and the losses for lack of room.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "unwind/kernel/bpf_object.h"
#include "unwind/stacks/stack_counts.h"

namespace pe::offcpu {

class KernelStackCounts {
 public:
  /// Adds `times` waits on a program's stack.
  void add(const unwind::StackOfKernel& stack, std::uint64_t times);
  /// Describes these stacks and `others`: "98.9 % of stacks complete; 12 ended: too deep"; empty if
  /// there were none.
  [[nodiscard]] std::string describe(const unwind::StackCounts& others) const;

 private:
  std::uint64_t stacks_ = 0, complete_ = 0, by_frame_pointer_ = 0, by_leaf_ = 0;
  std::array<std::uint64_t, unwind::kStackStopCount> incomplete_{};
};

/// Describes the losses: "; 12 without room in the kernel's map, 0.300 s"; empty if there were
/// none.
std::string describe_losses(const unwind::Counts& counts);

}  // namespace pe::offcpu
