// All rules of an image in one sorted array.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/cfi/unwind_table.h"

namespace pe::testing {

/// The codes are Rule::bits().
inline unwind::FlatCodes flat_rules(const unwind::UnwindTable& table) {
  return table.flat_codes(
      [](const unwind::CfiRow& row, bool is_signal_frame) {
        return unwind::architecture::rule_of(row, is_signal_frame).bits();
      },
      unwind::Rule(unwind::RuleKind::kNone).bits(), table.section_bytes());
}

}  // namespace pe::testing
