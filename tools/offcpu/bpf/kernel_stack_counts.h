// Counts how the stacks that the kernel has walked ended, and describes the losses for lack of
// room.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/cli/closing.h"
#include "recording/bpf/bpf_object.h"
#include "unwind/stacks/stack_counts.h"

namespace pe::offcpu {

class KernelStackCounts {
 public:
  /// Adds `times` waits on a program's stack.
  void add(const unwind::StackOfKernel& stack, std::uint64_t times);
  /// Returns the sums of these stacks and `others`.
  [[nodiscard]] unwind::StackCounts with(const unwind::StackCounts& others) const;
  /// Describes how incomplete stacks ended: "12 ended: too deep".
  [[nodiscard]] std::vector<std::string> ends() const;

 private:
  std::uint64_t stacks_ = 0, complete_ = 0, by_frame_pointer_ = 0, by_leaf_ = 0;
  std::array<std::uint64_t, unwind::kStackStopCount> incomplete_{};
};

/// Adds what had no room in the kernel.
void add_losses(const unwind::Counts& counts, Closing& closing);

}  // namespace pe::offcpu
