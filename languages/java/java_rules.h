// How to leave a frame in the code of a HotSpot JVM on x86-64.
//
// Compiled code keeps no frame pointer, but its frames have one size, with the caller's frame
// pointer right below the return address:
//
//     prologue   push rbp; sub rsp, SIZE - 16          or  sub rsp, SIZE - 8; mov [rsp + SIZE -
//     16], rbp epilogue   add rsp, SIZE - 16; pop rbp; a check for a safe point; ret
//
// The interpreter's frames are linked by rbp, and have the caller's stack pointer in the word below
// it.  Stubs without a frame of one size either push and set rbp, or have no frame; the code that
// follows shows which.
//
// Sources: OpenJDK, src/hotspot/cpu/x86/macroAssembler_x86.cpp (verified_entry),
// c1_MacroAssembler_x86.cpp (build_frame), x86_64.ad (MachEpilogNode), frame_x86.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "languages/common/memory.h"
#include "languages/java/code_cache.h"
#include "unwind/rule.h"

namespace pe::languages {

/// Returns the rule of the instruction at `avma`, which is in `blob`, or one byte before a return
/// address.
unwind::Rule java_rule(const CodeBlob& blob, std::uint64_t avma, const ReadCode& read);

}  // namespace pe::languages
