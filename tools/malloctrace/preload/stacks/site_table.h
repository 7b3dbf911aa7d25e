// Stacks that have allocated: maps a hash of the whole stack to its site, without a lock.
//
// The hash has 64 bits, and the stacks themselves are not compared.  Among a million stacks, one is
// mistaken for another with a probability of at most 10^-7.  The hash saves the hot path the tree
// of stacks, whose nodes are cache misses.  An entry has 12 bytes, because in programs with many
// stacks the table is larger than caches are.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"

namespace pe::malloctrace {

/// The hash of a list of frames, the outermost first.
class StackHash {
 public:
  /// Returns the hash of this stack plus one frame, whose heap::Code has this number.
  [[nodiscard]] StackHash with(std::uint32_t code) const noexcept {
    constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
    constexpr std::uint64_t kMix = 0xd6e8feb86659fd93;
    __extension__ using Product = unsigned __int128;
    const auto product = static_cast<Product>((bits_ ^ code) + kSpread) * kMix;
    StackHash longer;
    longer.bits_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    return longer;
  }
  [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};

class SiteTable {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start() noexcept;

  /// 0 if it is not known.
  [[nodiscard]] std::uint32_t find(StackHash stack) const noexcept {
    const Table* table = __atomic_load_n(&table_, __ATOMIC_ACQUIRE);
    for (std::uint64_t i = stack.bits();; ++i) {
      const Entry& entry = table->entry(i);
      const std::uint32_t site = __atomic_load_n(&entry.site, __ATOMIC_ACQUIRE);
      if (site == 0)
        return 0;
      if (entry.hash() == stack.bits())
        return site;
    }
  }

  // The caller must hold a lock for the rest.

  /// Makes room for one more stack; false if there is no memory.
  bool make_room() noexcept;
  /// Adds a stack that is not there; there must be room.
  void insert(StackHash stack, std::uint32_t site) noexcept { put(*table_, stack.bits(), site); }
  [[nodiscard]] std::size_t private_bytes() const noexcept { return bytes_of(*table_); }

 private:
  struct Entry {
    std::uint32_t low, high;  ///< of the hash
    std::uint32_t site;       ///< 0: the place is free; written last

    [[nodiscard]] std::uint64_t hash() const noexcept {
      constexpr unsigned kHalf = 32;
      return std::uint64_t{high} << kHalf | low;
    }
  };
  static_assert(sizeof(Entry) == 12);
  /// mask + 1 entries follow it.
  struct Table {
    std::uint64_t mask, count;

    [[nodiscard]] Entry& entry(std::uint64_t number) const noexcept {
      auto* first = reinterpret_cast<Entry*>(const_cast<Table*>(this) + 1);
      return first[number & mask];
    }
  };
  static constexpr std::uint64_t kFirstSize = 4096;

  static std::size_t bytes_of(const Table& table) noexcept {
    return sizeof(Table) + (table.mask + 1) * sizeof(Entry);
  }
  static Table* new_table(std::uint64_t size) noexcept;
  static void put(Table& table, std::uint64_t hash, std::uint32_t site) noexcept;

  Table* table_;
  Table* retired_;  ///< the previous one, which may still be read
};

}  // namespace pe::malloctrace
