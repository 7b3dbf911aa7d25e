// Steps where no call frame information helps.  Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <variant>

#include "unwind/address_space.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

/// From code that no table describes (`rule` kNone), or from no code at all (kNotExecutable: an
/// exact address that was jumped to): how `state` became the caller's, or why not.  `frame` is
/// the one that is stepped out of; only an exact one may be a leaf.
///
/// A frame pointer of 0 where there is no table means the outermost frame: the ABI asks for it at
/// program start, and the dynamic loader's and many C libraries' first code has no CFI.  Where
/// nothing is described, as of code made at run time, the register may be used for anything, so
/// there it only means that after a step by it.
std::variant<FrameSource, Stop> step_without_cfi(AddressSpace& space, RuleKind rule,
                                                 FrameState& state, const StackView& stack,
                                                 Frame frame);

/// Why a stack ends whose next return address, `state.ip`, is in no code.  0 is how threads of
/// code without CFI begin.
inline Stop stop_at_no_code(const FrameState& state) noexcept {
  return state.ip == 0 ? Stop::kEndOfStack : Stop::kBadReturnAddress;
}

/// What a step that failed means for the stack.
Stop stop_of(Step step) noexcept;

}  // namespace pe::unwind
