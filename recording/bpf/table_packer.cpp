// SPDX-License-Identifier: MIT
#include "recording/bpf/table_packer.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "recording/bpf/layout.h"
#include "recording/bpf/rule_numbers.h"

namespace pe::unwind {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << kBlockShift;

class Packer {
 public:
  Packer(const FlatCodes& codes, std::uint32_t rows_at, std::uint32_t max_words)
      : codes_(codes), rows_at_(rows_at), max_words_(std::min(max_words, kMaxFileWords)) {}

  std::optional<PackedTable> pack(CodeRange range);

 private:
  [[nodiscard]] std::uint64_t svma_of_next() const noexcept {
    return next_ < codes_.rows.size() ? codes_.base_svma + codes_.rows[next_].offset
                                      : std::numeric_limits<std::uint64_t>::max();
  }
  void read_block(std::uint64_t start_svma);
  std::uint32_t place_block();

  const FlatCodes& codes_;
  std::uint32_t rows_at_, max_words_;
  PackedTable packed_;
  std::size_t next_ = 0;                  ///< the first row that has not been read
  std::uint32_t active_ = kNumberOfNone;  ///< rule number of the row before it
  std::vector<std::uint32_t> block_;
  std::unordered_map<std::uint32_t, std::uint32_t> first_rows_;  ///< places, by rule number
};

void Packer::read_block(std::uint64_t start_svma) {
  block_.clear();
  for (; svma_of_next() <= start_svma; ++next_)
    active_ = codes_.rows[next_].code;
  block_.push_back(active_);
  for (; svma_of_next() - start_svma < kBlockBytes; ++next_) {
    active_ = codes_.rows[next_].code;
    block_.push_back(static_cast<std::uint32_t>(svma_of_next() - start_svma) << kRowShift |
                     active_);
  }
}

/// Returns the place of the block's first row, counted from the first row of all.
std::uint32_t Packer::place_block() {
  const auto known = first_rows_.find(block_.front());
  if (block_.size() == 1 && known != first_rows_.end())
    return known->second;
  const std::size_t in_chunk = (rows_at_ + packed_.rows.size()) % kChunkWords;
  if (in_chunk + block_.size() > kChunkWords)
    packed_.rows.resize(packed_.rows.size() + kChunkWords - in_chunk);
  const auto at = static_cast<std::uint32_t>(packed_.rows.size());
  packed_.rows.insert(packed_.rows.end(), block_.begin(), block_.end());
  first_rows_.try_emplace(block_.front(), at);
  return at;
}

std::optional<PackedTable> Packer::pack(CodeRange range) {
  constexpr std::uint64_t kMaxSvma = std::uint64_t{1} << 63;  // so that nothing here wraps
  if (std::max(range.end_svma, codes_.base_svma) > kMaxSvma)
    return std::nullopt;
  packed_.base_svma = range.start_svma / kBlockBytes * kBlockBytes;
  if (range.end_svma <= range.start_svma ||
      (range.end_svma - 1 - packed_.base_svma) / kBlockBytes >= max_words_)
    return std::nullopt;
  const std::uint64_t blocks = (range.end_svma - 1 - packed_.base_svma) / kBlockBytes + 1;
  packed_.index.reserve(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    read_block(packed_.base_svma + i * kBlockBytes);
    const std::uint32_t first = place_block();
    if (packed_.rows.size() + blocks > max_words_)
      return std::nullopt;
    packed_.index.push_back(static_cast<std::uint32_t>(block_.size() - 1) << kRowShift | first);
  }
  return std::move(packed_);
}

}  // namespace

std::optional<PackedTable> pack(const FlatCodes& codes, CodeRange range, std::uint32_t rows_at,
                                std::uint32_t max_words) {
  return Packer(codes, rows_at, max_words).pack(range);
}

}  // namespace pe::unwind
