// Memory that the program has mapped itself: the remaining pieces of each mapping, by address.
//
// A mapping may be unmapped piece by piece, even in its middle, or by another mapping placed over
// it.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "malloctrace/preload/memory/block_table.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"

namespace pe::malloctrace {

class MappingList {
 public:
  /// The part of a mapping that is about to go.
  struct Cut {
    Block block;               ///< the whole mapping, as the program requested it
    std::uint64_t from, to;    ///< bytes of it
    std::uint64_t block_avma;  ///< where it started
    bool is_last;              ///< nothing else of it is left
  };

  /// Adds a mapping of `block.bytes` at `avma`, rounded up to pages; it must not overlap a known
  /// one.  False if there is no memory.
  bool add(std::uint64_t avma, Block block) noexcept;

  /// Removes all pieces in the pages of a range, and calls `on_cut(Cut)` for each of them, under a
  /// lock.
  template <typename Function>
  void cut(std::uint64_t avma, std::uint64_t bytes, Function on_cut) noexcept {
    const std::uint64_t end = end_of(avma, bytes);
    const std::lock_guard guard(lock_);
    for (std::size_t i = first_behind(avma); i < count_ && pieces_[i].start < end;) {
      const Piece before = pieces_[i];
      const std::uint64_t from = std::max(avma, before.start);
      const std::uint64_t to = std::min(end, before.end);
      i = take_out(i, from, to);
      const auto offset = [&before](std::uint64_t place) {
        return std::min(place - before.block_avma, before.block.bytes);
      };
      on_cut(Cut{before.block, offset(from), offset(to), before.block_avma, !has_more(i, before)});
    }
  }

  [[nodiscard]] std::uint64_t private_bytes() const noexcept { return pieces_.bytes(); }

 private:
  struct Piece {
    std::uint64_t start, end;
    std::uint64_t block_avma;
    Block block;
    std::uint64_t number;  ///< of the mapping
  };

  static std::uint64_t end_of(std::uint64_t avma, std::uint64_t bytes) noexcept;
  [[nodiscard]] std::size_t first_behind(std::uint64_t avma) const noexcept;
  [[nodiscard]] bool has_more(std::size_t near, const Piece& piece) const noexcept;
  bool insert(std::size_t at, const Piece& piece) noexcept;
  std::size_t take_out(std::size_t at, std::uint64_t from, std::uint64_t to) noexcept;

  SpinLock lock_;
  PrivateArray<Piece> pieces_;  ///< by address
  std::size_t count_;
  std::uint64_t mappings_;  ///< number of mappings so far
};

}  // namespace pe::malloctrace
