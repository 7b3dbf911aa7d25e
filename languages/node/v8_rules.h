// The rules by which to walk code that V8 has compiled at run time.
//
// Functions link their frames by rbp: they start with push rbp; mov rbp, rsp, and end with
// mov rsp, rbp; pop rbp and a few instructions that remove their arguments.
//
// Source: V8, src/codegen/x64/macro-assembler-x64.cc (EnterFrame, LeaveFrame),
// src/compiler/backend/x64/code-generator-x64.cc (AssembleReturn).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "languages/common/memory.h"
#include "languages/node/code.h"
#include "unwind/rule.h"

namespace pe::languages {

/// Returns the rule of the instruction at `avma`, which is in `code`, or one byte before a return
/// address.
unwind::Rule v8_rule(const V8CodeFields& code, std::uint64_t avma, const ReadCode& read);

}  // namespace pe::languages
