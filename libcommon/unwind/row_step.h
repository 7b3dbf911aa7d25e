// Follows one row of CFI with all registers: the general way, for rows that no Rule describes,
// and for walks that need more registers than rules keep.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/architecture.h"
#include "unwind/cfi_program.h"
#include "unwind/stack_view.h"
#include "unwind/step.h"

namespace pe::unwind {

/// Turns `registers` into the caller's; on anything but kDone they are as they were.  A register
/// that is lost, whose place was not copied, or that depends on one that is unknown, is unknown
/// afterwards.  kNoProgress unless the stack pointer grew, which bounds every walk.
Step step_row(const CfiRow& row, architecture::Registers& registers, const StackView& stack);

}  // namespace pe::unwind
