// Reads .eh_frame_hdr: it gives the start of .eh_frame, and a searchable table of its functions.
//
// The table {function, FDE} is sorted by function.  It is used if it has the one encoding that
// linkers write (datarel, 4 bytes): 8 bytes a function.  Borrows memory, never allocates.
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
  /// `pairs` are pairs of int32, relative to `data_svma`.
  SearchTable(Bytes pairs, std::uint64_t data_svma) noexcept
      : pairs_(pairs), data_svma_(data_svma) {}

  [[nodiscard]] Bytes pairs() const noexcept { return pairs_; }
  [[nodiscard]] std::size_t size() const noexcept { return pairs_.size() / kPairBytes; }
  /// Finds the last function that starts at or before `svma`, which it need not cover.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t svma) const noexcept;
  /// Returns where the FDE of function `number` (below size()) is, which may be anywhere.
  [[nodiscard]] std::uint64_t fde_svma(std::size_t number) const noexcept;

  static constexpr std::size_t kPairBytes = 8;

 private:
  Bytes pairs_;
  std::uint64_t data_svma_ = 0;
};

struct EhFrameHeader {
  std::optional<std::uint64_t> frames_svma;  ///< where .eh_frame starts
  SearchTable table;                         ///< empty if it has another encoding
};

/// `header` was linked to `svma`, and may have bytes after its end.  Returns nullopt if it is
/// invalid.
std::optional<EhFrameHeader> read_eh_frame_header(Bytes header, std::uint64_t svma) noexcept;

}  // namespace pe::unwind
