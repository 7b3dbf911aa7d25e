// Follows one row of CFI with all registers.  This is the general way, for rows that no Rule
// describes, and for walks that need more registers than rules keep.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/architecture.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

/// Turns `registers` into the caller's.  They are unchanged after any result but kDone, kOtherStack
/// and kStandsStill.  A caller's register is unknown if it is lost, if its place was not copied, or
/// if it depends on an unknown register.
Step step_row(const CfiRow& row, architecture::Registers& registers, const StackView& stack);

/// Whether a step failed because the caller is on another stack than the copied one.  `row` gives
/// the place of the caller's stack pointer, and that place is not in the copy.
inline bool needs_another_stack(Step step, const CfiRow& row) noexcept {
  return step == Step::kNotCaptured &&
         row.registers[architecture::kStackPointer].kind != RegisterRule::Kind::kSameValue;
}

/// Whether a step by a row has led to a frame; if not, stop_of(step) is the reason.  `is_exact`
/// refers to the frame before, as in Frame.
///
/// The stack pointer must grow, which bounds every walk.  The only exception is one step out of an
/// interrupted frame: only such a frame can still have its return address in a register.
inline bool leads_to_a_frame(Step step, bool is_exact, bool is_signal_frame) noexcept {
  return step == Step::kDone || step == Step::kOtherStack ||
         (step == Step::kStandsStill && is_exact && !is_signal_frame);
}

}  // namespace pe::unwind
