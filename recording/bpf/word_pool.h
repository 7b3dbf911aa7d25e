// Stores the words of all tables, one after the other, over the chunks of a store.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "recording/bpf/layout.h"
#include "recording/bpf/table_store.h"

namespace pe::unwind {

class WordPool {
 public:
  /// `store` must outlive this.  `max_words` is at most kMaxWords.
  WordPool(TableStore& store, std::uint32_t max_words) : store_(store), max_words_(max_words) {}

  /// The word that the next append() writes first.
  [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint32_t left() const noexcept { return max_words_ - next_; }
  /// Writes at most left() words, and returns where they start.
  std::uint32_t append(std::span<const std::uint32_t> words);

  static constexpr std::uint32_t kMaxWords = std::uint32_t{kMaxChunks} << kChunkShift;

 private:
  TableStore& store_;
  std::uint32_t max_words_;
  std::uint32_t next_ = 0;
};

}  // namespace pe::unwind
