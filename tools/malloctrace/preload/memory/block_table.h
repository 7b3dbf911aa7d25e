// Live blocks of any allocator: address -> site and size, 16 bytes each.
//
// Open addressing in 256 parts, each with its own lock.  Blocks of one page are neighbours.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"

namespace pe::malloctrace {

struct Block {
  std::uint32_t site;
  std::uint64_t bytes;
};

class BlockTable {
 public:
  /// Replaces any block at this address.  False if there is no memory.  `avma` must be below 2^48
  /// and the site below 2^26; sizes are cut at 2^54 - 1.
  bool insert(std::uint64_t avma, Block block) noexcept;
  /// Removes the block; nullopt if there is none.
  std::optional<Block> take(std::uint64_t avma) noexcept;
  [[nodiscard]] std::uint64_t private_bytes() const noexcept;

 private:
  struct Entry {
    std::uint64_t address;  ///< the upper 16 bits belong to the size; 0: a free place
    std::uint64_t rest;     ///< site and the lower 38 bits of the size
  };
  struct alignas(64) Part {
    SpinLock lock;
    std::uint32_t count;
    PrivateArray<Entry> entries;

    bool grow() noexcept;
    [[nodiscard]] std::size_t find(std::uint64_t avma) const noexcept;
    void close_gap(std::size_t gap) noexcept;
  };
  static constexpr std::size_t kParts = 256;

  static std::uint64_t hash(std::uint64_t avma) noexcept;
  static std::size_t place(std::uint64_t avma, std::size_t size) noexcept;
  Part& part_of(std::uint64_t avma) noexcept { return parts_[hash(avma) % kParts]; }

  std::array<Part, kParts> parts_;
};

}  // namespace pe::malloctrace
