// Finds the registers that a walk does not carry, for the few rows that need them.
//
// A walk knows the stack pointer, the frame pointer and the address of each frame.  Few rows define
// a frame by rbx or r12 to r15: in the dynamic linker's lazy binding, and in assembly that aligns
// its stack.  For these rows all registers are found anew, from here outwards.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/stacks/code_book.h"

namespace pe::malloctrace {

/// Finds the registers that functions must preserve: rbx, rbp, r12 to r15.  `frame` is on the
/// calling thread's stack, outside of the caller's frame.  Costs about a microsecond a frame. False
/// if the walk does not meet the frame.
bool find_all_registers(CodeBook& codes, const unwind::FrameState& frame,
                        unwind::architecture::Registers& into) noexcept;

}  // namespace pe::malloctrace
