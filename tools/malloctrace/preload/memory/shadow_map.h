// Live blocks of glibc's malloc: 4 bytes for each 512 bytes of the heap, and 32 more for each seven
// blocks if several start there.
//
// It relies on glibc's layout (malloc/malloc.c of glibc 2.36: MINSIZE, chunksize()).  Chunks have
// at least 32 bytes and are aligned to 16.  The word before a block holds its chunk's size.  So an
// entry stores the site, the slack, and where in the 512 bytes the block starts.  The slack is the
// bytes that the chunk has beyond the requested size.  Blocks with more of it (mostly those with
// their own mapping) are also in a table, and so are those of very high sites.
//
// Each region of 512 bytes has a word.  A word is 0, an entry, or a link to a cell: eight words of
// which the last may be a link again.  Entries are added by compare-and-exchange.  A link replaces
// an entry, which moves into the new cell, and remains.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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
    const std::uint64_t slack = usable_bytes(avma) - block.bytes;
    const bool is_elsewhere = slack >= kElsewhere || block.site >= kMostSites;
    if (is_elsewhere && !others.insert(avma, block)) [[unlikely]]
      return false;
    Leaf* leaf = leaf_of(avma);
    if (leaf == nullptr) [[unlikely]]
      leaf = add_leaf(avma);
    if (leaf == nullptr) [[unlikely]]
      return false;
    const std::uint32_t entry = place_of(avma) | (block.site % kMostSites) << kSlackBits |
                                (is_elsewhere ? kElsewhere : static_cast<std::uint32_t>(slack));
    const Found found = find(*leaf, avma);
    if (found.word != nullptr && change(*found.word, found.value, entry)) [[likely]]
      return true;
    return insert_otherwise(*leaf, avma, entry);
  }

  /// Removes a block; its site is 0 if there is none.
  Block take(std::uint64_t avma, BlockTable& others) noexcept {
    Leaf* leaf = leaf_of(avma);
    if (leaf == nullptr || avma % kUnit != 0) [[unlikely]]
      return {};
    Found found = find(*leaf, avma);
    if (found.last == nullptr) [[likely]] {
      store_relaxed(*found.word, 0U);
    } else {
      // The last word may have become a link, and the entry is in another cell.
      while (found.value != 0 && !change(*found.word, found.value, 0U))
        found = find(*leaf, avma);
      if (found.value == 0)
        return {};  // the program may free an address that is not the start of a block
    }
    const std::uint32_t slack = found.value & kElsewhere;
    if (slack == kElsewhere) [[unlikely]]
      return others.take(avma).value_or(Block{});
    return {found.value % kPlace >> kSlackBits, usable_bytes(avma) - slack};
  }

  /// Returns the bytes that have been touched; it asks the kernel.
  [[nodiscard]] std::uint64_t private_bytes() const noexcept;

  void prefetch(std::uint64_t avma) const noexcept {
    Leaf* leaf = leaf_of(avma);
    if (leaf == nullptr) [[unlikely]]
      return;
    const std::uint32_t word = load_relaxed(leaf->word_of(avma));
    if ((word & kIsLink) != 0)
      __builtin_prefetch(&leaf->cells[word % kCells], 1);
  }

 private:
  static constexpr unsigned kAddressBits = 47;
  static constexpr unsigned kLeafBits = 26;  ///< of the addresses that one leaf covers
  static constexpr unsigned kRegionBits = 9;
  static constexpr std::uint64_t kUnit = 16;  ///< blocks are aligned to this
  static constexpr std::size_t kLeaves = std::size_t{1} << (kAddressBits - kLeafBits);
  static constexpr std::size_t kRegions = std::size_t{1} << (kLeafBits - kRegionBits);
  /// Three cells hold the 16 blocks that a region has at most.
  static constexpr std::size_t kCells = 4 * kRegions;

  // An entry: the unit of the region in which the block starts, the site, the slack.
  static constexpr std::uint32_t kIsLink = 0x80000000;  ///< a link: and the number of a cell
  static constexpr unsigned kPlaceShift = 26;
  static constexpr std::uint32_t kPlace = std::uint32_t{1} << kPlaceShift;
  static constexpr unsigned kSlackBits = 5;
  static constexpr std::uint32_t kElsewhere = (1U << kSlackBits) - 1;
  static constexpr std::uint32_t kMostSites = kPlace >> kSlackBits;

  struct alignas(32) Cell {
    std::array<std::uint32_t, 8> words;
  };
  /// In zeroed memory.
  struct Leaf {
    std::array<std::uint32_t, kRegions> words;
    alignas(64) std::uint32_t cell_count;  ///< cells that were ever taken
    std::array<Cell, kCells> cells;

    std::uint32_t& word_of(std::uint64_t avma) noexcept {
      return words[(avma >> kRegionBits) % kRegions];
    }
  };
  struct Found {
    /// The word that has the entry; else one that is free; else nullptr.
    std::uint32_t* word;
    std::uint32_t value;  ///< the entry; 0: there is none
    /// The last word of the chain, and what it was.  nullptr if another one has the entry: then
    /// only the block's thread changes it.
    std::uint32_t* last;
    std::uint32_t last_value;
  };

  [[nodiscard]] Leaf* leaf_of(std::uint64_t avma) const noexcept {
    return __atomic_load_n(&leaves_[(avma >> kLeafBits) % kLeaves], __ATOMIC_ACQUIRE);
  }
  static std::uint32_t place_of(std::uint64_t avma) noexcept {
    constexpr std::uint64_t kUnits = (std::uint64_t{1} << kRegionBits) / kUnit;
    return static_cast<std::uint32_t>(avma / kUnit % kUnits) << kPlaceShift;
  }
  static Found find(Leaf& leaf, std::uint64_t avma) noexcept {
    const std::uint32_t place = place_of(avma);
    const auto is_there = [place](std::uint32_t value) {
      return value - place < kPlace && value != 0;
    };
    std::uint32_t* free = nullptr;
    std::uint32_t* word = &leaf.word_of(avma);
    while (true) {
      const std::uint32_t value = load_published(*word);
      if ((value & kIsLink) == 0) {
        if (is_there(value))
          return {word, value, word, value};
        return {value == 0 && free == nullptr ? word : free, 0, word, value};
      }
      Cell& cell = leaf.cells[value % kCells];
      for (std::size_t i = 0; i + 1 < cell.words.size(); ++i) {
        const std::uint32_t one = load_relaxed(cell.words[i]);
        if (is_there(one))
          return {&cell.words[i], one, nullptr, 0};
        if (one == 0 && free == nullptr)
          free = &cell.words[i];
      }
      word = &cell.words.back();
    }
  }
  /// Inserts an entry if there is no free word, or another thread has taken it.
  static bool insert_otherwise(Leaf& leaf, std::uint64_t avma, std::uint32_t entry) noexcept;
  /// Maps a leaf and returns it.
  Leaf* add_leaf(std::uint64_t avma) noexcept;

  /// private_bytes() checks this many leaves.  It assumes that leaves beyond these, of heaps of
  /// more than 8 GiB, are like them.
  static constexpr std::size_t kNotedLeaves = 128;

  PrivateArray<Leaf*> leaves_;
  std::array<Leaf*, kNotedLeaves> noted_;
  std::uint32_t leaf_count_;
};

// The live blocks: in a shadow of the heap if the allocator is glibc's and nothing is sampled, else
// in a table.

class LiveBlocks {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start(bool has_shadow) noexcept {
    has_shadow_ = has_shadow;
    return !has_shadow || shadow_.start();
  }

  /// Replaces any block at this address; false if there is no memory.
  bool insert(const void* memory, Block block) noexcept {
    const auto avma = reinterpret_cast<std::uint64_t>(memory);
    return has_shadow_ ? shadow_.insert(avma, block, table_) : table_.insert(avma, block);
  }
  /// Removes a block; its site is 0 if it is not known.  The memory must still be live.
  Block take(const void* memory) noexcept {
    const auto avma = reinterpret_cast<std::uint64_t>(memory);
    return has_shadow_ ? shadow_.take(avma, table_) : table_.take(avma).value_or(Block{});
  }
  void prefetch(const void* memory) const noexcept {
    if (has_shadow_)
      shadow_.prefetch(reinterpret_cast<std::uint64_t>(memory));
  }
  [[nodiscard]] std::uint64_t private_bytes() const noexcept {
    return table_.private_bytes() + (has_shadow_ ? shadow_.private_bytes() : 0);
  }

 private:
  bool has_shadow_;
  ShadowMap shadow_;
  BlockTable table_;
};

}  // namespace pe::malloctrace
