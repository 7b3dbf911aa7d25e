// From the rules and rows of call frame information to what the kernel's unwinder can follow.
//
// A rule of libcommon/unwind has the same meaning there.  Of the rows that no such rule describes
// most have an entry all the same:
//
//     CFA = another register + n             what hand-written and realigning code begins with
//     CFA = *(rsp + n) [+ m]                 OpenSSL's assembly
//     CFA = *(rbp + n) [+ m]                 the same, and gcc where it also moves other registers
//     the frame that a signal handler returns to
//
// The rest is kRuleUnsupported, and such a stack is left to user space.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "unwind/cfi/cfi_program.h"
#include "unwind/kernel/layout.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// What says the same as a rule; kRuleUnsupported for kGeneral, which needs its row, and for
/// kNotExecutable, which no table holds.
RuleEntry entry_of(Rule rule) noexcept;

/// What says the same as a row; `is_signal_frame` is its CIE's.
RuleEntry entry_of(const CfiRow& row, bool is_signal_frame) noexcept;

/// In words, for tests and reports: "cfa=rsp+16 fp=cfa-16", "signal", ...
std::string to_string(const RuleEntry& entry);

constexpr bool operator==(const RuleEntry& a, const RuleEntry& b) noexcept {
  return a.kind == b.kind && a.base == b.base && a.frame_pointer_slot == b.frame_pointer_slot &&
         a.offset == b.offset;
}

}  // namespace pe::unwind
