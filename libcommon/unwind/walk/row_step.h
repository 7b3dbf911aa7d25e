// Follows one row of CFI with all registers: the general way, for rows that no Rule describes,
// and for walks that need more registers than rules keep.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/architecture.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/step.h"

namespace pe::unwind {

/// Turns `registers` into the caller's; they are as they were after anything but kDone, kOtherStack
/// and kStandsStill.  A register that is lost, whose place was not copied, or that depends on one
/// that is unknown, is unknown afterwards.
Step step_row(const CfiRow& row, architecture::Registers& registers, const StackView& stack);

/// Whether a step failed because the caller is on another stack than the one that was copied:
/// `row` says where, and that is not in the copy.
inline bool needs_another_stack(Step step, const CfiRow& row) noexcept {
  return step == Step::kNotCaptured &&
         row.registers[architecture::kStackPointer].kind != RegisterRule::Kind::kSameValue;
}

/// Whether a step by a row has led to a frame; `stop_of(step)` if not.  `is_exact` says whether the
/// one before is, as in Frame.
///
/// The stack pointer must grow, which bounds every walk, but for one step out of what was
/// interrupted: only there can the return address be in a register still.
inline bool leads_to_a_frame(Step step, bool is_exact, bool is_signal_frame) noexcept {
  return step == Step::kDone || step == Step::kOtherStack ||
         (step == Step::kStandsStill && is_exact && !is_signal_frame);
}

}  // namespace pe::unwind
