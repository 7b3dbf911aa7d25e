// The state that walking carries from frame to frame, and what can become of a step.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::unwind {

/// What the common rules need and give.  All are avma.
struct FrameState {
  std::uint64_t ip;  ///< of the first frame: the instruction; of a caller: the return address
  std::uint64_t sp;
  std::uint64_t fp;

  constexpr bool operator==(const FrameState&) const noexcept = default;
};

enum class Step : std::uint8_t {
  kDone,             ///< the state is the caller's
  kOtherStack,       ///< the same, but its stack is another, which was not copied
  kStandsStill,      ///< the same, with the same stack pointer: the return address is in a register
  kEndOfStack,       ///< there is no caller
  kNotCaptured,      ///< the stack that is needed was not copied
  kNoProgress,       ///< the caller's frame would not lie above this one
  kUnknownRegister,  ///< depends on a register that is not known
  kUnusable,         ///< no rule, or one that makes no sense
};

}  // namespace pe::unwind
