// .eh_frame_hdr: where .eh_frame begins, and a table of its functions that can be searched.
//
// The table, {function, FDE} sorted by function, is used if it is of the one encoding that linkers
// write (datarel, 4 bytes): 8 bytes a function.  Borrows, never allocates.
//
// Source: LSB 5.0 Core, 10.6.2 "The .eh_frame_hdr section".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace pe::unwind {

/// The sorted table.
class SearchTable {
 public:
  SearchTable() = default;
  /// Pairs of int32 that count from `data_svma`.
  SearchTable(Bytes pairs, std::uint64_t data_svma) noexcept
      : pairs_(pairs), data_svma_(data_svma) {}

  [[nodiscard]] Bytes pairs() const noexcept { return pairs_; }
  [[nodiscard]] std::size_t size() const noexcept { return pairs_.size() / kPairBytes; }
  /// The last function that starts at or before `svma`, which it need not cover.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t svma) const noexcept;
  /// Of a function by number, below size(): where its FDE is; may be anywhere.
  [[nodiscard]] std::uint64_t fde_svma(std::size_t number) const noexcept;

  static constexpr std::size_t kPairBytes = 8;

 private:
  Bytes pairs_;
  std::uint64_t data_svma_ = 0;
};

struct EhFrameHeader {
  std::optional<std::uint64_t> frames_svma;  ///< where .eh_frame begins
  SearchTable table;                         ///< empty if it is of another encoding
};

/// `header` was linked to `svma`, and may be longer than it is.  nullopt if it makes no sense.
std::optional<EhFrameHeader> read_eh_frame_header(Bytes header, std::uint64_t svma) noexcept;

}  // namespace pe::unwind
