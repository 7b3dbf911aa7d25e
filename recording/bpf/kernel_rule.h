// Converts rules and rows of call frame information to entries that the kernel's unwinder can
// follow.
//
// A rule of libcommon/unwind has the same meaning in the kernel.  Most of the rows that no such
// rule describes also have an entry:
//
//     CFA = another register + n             the start of hand-written and realigning code
//     CFA = *(rsp + n) [+ m]                 OpenSSL's assembly
//     CFA = *(rbp + n) [+ m]                 the same, and gcc where it also moves other registers
//     the frame that a signal handler returns to
//
// Other rows are kRuleUnsupported, and such a stack is left to user space.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "recording/bpf/layout.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// Returns the entry that is equivalent to a rule.  kGeneral gives kRuleUnsupported, because it
/// needs its row.  So does kNotExecutable, which no table holds.
RuleEntry entry_of(Rule rule) noexcept;

/// Returns the entry that is equivalent to a row; `is_signal_frame` comes from its CIE.
RuleEntry entry_of(const CfiRow& row, bool is_signal_frame) noexcept;

constexpr bool operator==(const RuleEntry& a, const RuleEntry& b) noexcept {
  return a.kind == b.kind && a.base == b.base && a.frame_pointer_slot == b.frame_pointer_slot &&
         a.offset == b.offset;
}

}  // namespace pe::unwind
