// One file's rows in the form of layout.h: an index word for each 256 bytes of code, and rows.
//
// A block of one row, which is what the inside of a large function is made of, shares the first row
// of any block that begins with the same rule.  libLLVM-14: 861,000 rows and 252,000 blocks.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unwind/cfi/unwind_table.h"

namespace pe::unwind {

/// Linked code, from `start_svma` up to `end_svma`.
struct CodeRange {
  std::uint64_t start_svma = 0, end_svma = 0;
};

struct PackedTable {
  std::uint64_t base_svma = 0;       ///< of the first block: a multiple of 256
  std::vector<std::uint32_t> rows;   ///< to be written at the word that they were packed for
  std::vector<std::uint32_t> index;  ///< a word a block
};

/// Packs rows of rule numbers, kNumberOfNone before the first, so that every block of `range` has
/// an index word.  `rows_at` is the word that the rows will begin at: a block does not lie across
/// chunks.  nullopt if there are more words than an index can tell, or than `max_words`.
std::optional<PackedTable> pack(const FlatCodes& codes, CodeRange range, std::uint32_t rows_at,
                                std::uint32_t max_words);

/// What a file may have: rows are counted from the file's first in 24 bits.
inline constexpr std::uint32_t kMaxFileWords = 1U << 24;

}  // namespace pe::unwind
