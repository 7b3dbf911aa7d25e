// Packs one file's rows in the form of layout.h: an index word for each 256 bytes of code, and
// rows.
//
// The inside of a large function consists of blocks of one row.  Such a block shares the first row
// of any block that starts with the same rule.  libLLVM-14: 861,000 rows and 252,000 blocks.
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
  std::vector<std::uint32_t> rows;   ///< to be written at the word for which they were packed
  std::vector<std::uint32_t> index;  ///< one word for each block
};

/// Packs rows of rule numbers, with kNumberOfNone before the first row.  Every block of `range`
/// gets an index word.  `rows_at` is the word where the rows will start: a block does not extend
/// over two chunks.  Returns nullopt if there are more words than an index can address, or than
/// `max_words`.
std::optional<PackedTable> pack(const FlatCodes& codes, CodeRange range, std::uint32_t rows_at,
                                std::uint32_t max_words);

/// The limit for one file: rows are counted from the file's first in 24 bits.
inline constexpr std::uint32_t kMaxFileWords = 1U << 24;

}  // namespace pe::unwind
