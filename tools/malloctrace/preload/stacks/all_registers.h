// The registers that a walk does not carry, for the few rows that need them.
//
// A walk knows the stack pointer, the frame pointer and the address of each frame, and rows that
// say where a frame begins by rbx or r12 to r15 are met seldom: in the dynamic linker's lazy
// binding, and in assembly that aligns its stack.  Then all registers are found anew, from here
// outwards.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/stacks/code_book.h"

namespace pe::malloctrace {

/// Those that functions must keep (rbx, rbp, r12 to r15), at a frame of the calling thread's stack
/// that is outside of the caller's; `end` is that stack's.  Costs a microsecond a frame or so.
/// False if the frame is not met.
bool find_all_registers(CodeBook& codes, const unwind::FrameState& frame, std::uint64_t end,
                        unwind::architecture::Registers& into) noexcept;

}  // namespace pe::malloctrace
