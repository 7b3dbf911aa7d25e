// Live blocks of glibc's malloc: 4 bytes for each 32 bytes of the heap, written by plain stores.
//
// It relies on glibc's layout (malloc/malloc.c of glibc 2.36: MINSIZE, chunksize()).  Chunks have
// at least 32 bytes and are aligned to 16, so no two blocks start in the same 32.  The word before
// a block holds its chunk's size.  So an entry stores the site, the slack, and the half of the 32
// in which the block starts.  The slack is the bytes that the chunk has beyond the requested size.
// Blocks with more of it (mostly those with their own mapping) are also in a table.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "malloctrace/preload/memory/block_table.h"
#include "malloctrace/preload/memory/shared_memory.h"

namespace pe::malloctrace {

/// Returns the usable size of a glibc block.  Reads the word before the block, which is not the
/// program's.
[[gnu::no_sanitize_address]] inline std::uint64_t usable_bytes(std::uint64_t avma) noexcept {
  constexpr std::uint64_t kFlags = 7;
  constexpr std::uint64_t kIsMapped = 2;
  constexpr std::uint64_t kWord = 8;
  const std::uint64_t chunk =
      *reinterpret_cast<const std::uint64_t*>(avma - kWord);  // NOLINT(performance-no-int-to-ptr)
  return (chunk & ~kFlags) - ((chunk & kIsMapped) != 0 ? 2 * kWord : kWord);
}

class ShadowMap {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start() noexcept { return leaves_.map(kLeaves); }

  /// Replaces any block at this address.  False if there is no memory.
  bool insert(std::uint64_t avma, Block block, BlockTable& others) noexcept {
    std::uint32_t* entry = entry_of(avma);
    if (entry == nullptr) [[unlikely]] {
      entry = add_leaf(avma);
      if (entry == nullptr)
        return false;
    }
    const std::uint32_t half = half_of(avma);
    const std::uint64_t slack = usable_bytes(avma) - block.bytes;
    if (slack >= kElsewhere) [[unlikely]] {
      if (!others.insert(avma, block))
        return false;
      store_relaxed(*entry, half | block.site << kSlackBits | kElsewhere);
      return true;
    }
    store_relaxed(*entry, half | block.site << kSlackBits | static_cast<std::uint32_t>(slack));
    return true;
  }

  /// Removes a block; its site is 0 if there is none.
  Block take(std::uint64_t avma, BlockTable& others) noexcept {
    std::uint32_t* entry = entry_of(avma);
    const std::uint32_t value = entry == nullptr ? 0 : load_relaxed(*entry);
    // The program may free an address that is not the start of a block.
    if (value == 0 || (value & kHalf) >> kHalfShift != avma % kGrain) [[unlikely]]
      return {};
    store_relaxed(*entry, 0U);
    const std::uint32_t slack = value & kElsewhere;
    if (slack == kElsewhere) [[unlikely]]
      return others.take(avma).value_or(Block{});
    return {(value & ~kHalf) >> kSlackBits, usable_bytes(avma) - slack};
  }

  /// Returns the bytes that have been touched; it asks the kernel.
  [[nodiscard]] std::uint64_t private_bytes() const noexcept;

  void prefetch(std::uint64_t avma) const noexcept {
    if (const std::uint32_t* entry = entry_of(avma); entry != nullptr) [[likely]]
      __builtin_prefetch(entry, 1);
  }

 private:
  static constexpr unsigned kAddressBits = 47;
  static constexpr unsigned kLeafBits = 26;  ///< of the addresses that one leaf covers
  static constexpr unsigned kGrainBits = 5;
  static constexpr unsigned kSlackBits = 5;
  static constexpr std::uint64_t kGrain = std::uint64_t{1} << kGrainBits;
  static constexpr std::uint32_t kHalf = 0x80000000;  ///< the block starts 16 bytes after the grain
  static constexpr unsigned kHalfShift = 31 - 4;
  static constexpr std::uint32_t kElsewhere = (1U << kSlackBits) - 1;
  static constexpr std::size_t kLeaves = std::size_t{1} << (kAddressBits - kLeafBits);
  static constexpr std::size_t kLeafSize = std::size_t{1} << (kLeafBits - kGrainBits);

  [[nodiscard]] std::uint32_t* entry_of(std::uint64_t avma) const noexcept {
    std::uint32_t* leaf =
        __atomic_load_n(&leaves_[(avma >> kLeafBits) % kLeaves], __ATOMIC_ACQUIRE);
    return leaf == nullptr ? nullptr : leaf + (avma >> kGrainBits) % kLeafSize;
  }
  static std::uint32_t half_of(std::uint64_t avma) noexcept {
    return static_cast<std::uint32_t>(avma << kHalfShift) & kHalf;
  }
  /// Maps a leaf and returns the entry in it.
  std::uint32_t* add_leaf(std::uint64_t avma) noexcept;

  /// private_bytes() checks this many leaves.  It assumes that leaves beyond these, of heaps of
  /// more than 8 GiB, are like them.
  static constexpr std::size_t kNotedLeaves = 128;

  PrivateArray<std::uint32_t*> leaves_;
  std::array<std::uint32_t*, kNotedLeaves> noted_;
  std::uint32_t leaf_count_;
};

}  // namespace pe::malloctrace
