// Properties of any call frame information: a found entry covers the address that was looked up,
// and rules come from rows.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>

#include "support/flat_rules.h"
#include "unwind/cfi/unwind_table.h"

namespace pe::testing {

inline constexpr std::size_t kMaxFdes = 64;  ///< the number of FDEs that are checked one by one

inline void check(bool holds) {
  if (!holds)
    std::abort();
}

inline void check_index(const unwind::CfiSection& section) {
  std::uint64_t last_start = 0;
  for (std::size_t number = 0; number < std::min(section.fde_count(), kMaxFdes); ++number) {
    const auto fde = section.fde(number);
    if (section.has_search_table())
      continue;  // its entries may be wrong
    check(fde.has_value());
    check(fde->start_svma >= last_start);
    last_start = fde->start_svma;
    const auto found = section.find(fde->start_svma);
    check(found && section.fde(*found)->start_svma == fde->start_svma);
  }
}

/// `sections` are those of the table.
inline void check_rules(unwind::UnwindTable& table, std::span<const unwind::CfiSection> sections) {
  std::size_t fdes = 0;
  std::size_t bytes = 0;
  for (const unwind::CfiSection& section : sections) {
    for (std::size_t number = 0; number < std::min(section.fde_count(), kMaxFdes); ++number) {
      const auto fde = section.fde(number);
      for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{99}}) {
        const std::uint64_t svma = (fde ? fde->start_svma : 0x20000) + offset;
        const unwind::Rule rule = table.rule(svma);
        if (rule.kind() != unwind::RuleKind::kNone)
          check(table.full_row(svma).has_value());
        check(table.rule(svma) == rule);
      }
    }
    fdes += section.fde_count();
    bytes += section.size_bytes();
  }
  const unwind::FlatCodes flat = flat_rules(table);
  check(flat.functions + flat.left_out == fdes);
  check(std::is_sorted(
      flat.rows.begin(), flat.rows.end(),
      [](const unwind::CodedRow& a, const unwind::CodedRow& b) { return a.offset < b.offset; }));
  check(flat.rows.size() <= 2 * bytes + 2);
}

}  // namespace pe::testing
