// Functions at the calls in optimized code, also inlined ones.
//
// Source positions describe optimized code, but code of the compiler Maglev lacks those of many
// functions.  V8 itself walks the stack by what it needs to replace optimized code by bytecode,
// which is complete for each call during which a function of JavaScript may run.  So a caller is
// always right.  A call of V8's own code may have no description: then its source position counts,
// as it does for an innermost instruction.
//
// The code is followed by a table of its calls.  An entry has the return address; if the call is
// described, also the number of a deoptimization entry, and the address that replaces the return
// address once the code has become invalid.  All are offsets in the code.  The deoptimization entry
// leads to a translation: frames, the outermost first, with the places of their values.
//
// A translation is a sequence of instructions: the number of its kind in a byte, and operands, with
// 7 bits a byte, the lowest first.  Signed operands have their sign in the lowest bit.  The first
// instruction has the distance back to an earlier translation, or 0, and the number of frames.  A
// byte beyond the last kind is a number of instructions that are those of the earlier translation,
// at the same places.
//
// Sources: V8, src/codegen/safepoint-table.h, maglev-safepoint-table.h,
// src/objects/deoptimization-data.h, src/deoptimizer/translation-opcode.h,
// frame-translation-builder.cc.  Tables and translations of Node 24 and 25 were compared with the
// output of --print-maglev-code and --print-opt-code.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "languages/node/positions.h"

namespace pe::languages {

/// Returns the functions at the call that returns to `return_offset` in the code, the innermost
/// first; nothing if they are unknown.
std::vector<V8Scope> v8_scopes_of_call(V8Heap& heap, const V8Scopes& described,
                                       std::uint32_t return_offset);

}  // namespace pe::languages
