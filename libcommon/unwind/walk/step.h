// The state that a walk carries from frame to frame, and the results of a step.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::unwind {

/// The registers that common rules need and produce.  All are avma.
struct FrameState {
  std::uint64_t ip;  ///< of the first frame: the instruction; of a caller: the return address
  std::uint64_t sp;
  std::uint64_t fp;

  constexpr bool operator==(const FrameState&) const noexcept = default;
};

enum class Step : std::uint8_t {
  kDone,             ///< the state is the caller's
  kOtherStack,       ///< the same, but the caller's stack is another one, which was not copied
  kStandsStill,      ///< the same, with the same stack pointer: the return address is in a register
  kEndOfStack,       ///< there is no caller
  kNotCaptured,      ///< the step needs stack memory that was not copied
  kNoProgress,       ///< the caller's frame would not be above this one
  kUnknownRegister,  ///< the step depends on an unknown register
  kUnusable,         ///< no rule, or an invalid one
};

}  // namespace pe::unwind
