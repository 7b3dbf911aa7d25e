// Data about each address that has been in a stack: 16 bytes, found without a lock.
//
// Entries are only inserted, except that remove_if() runs after code has been unloaded.  It makes a
// new table; a thread that still reads the old one finds entries that were true a moment ago.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"
#include "unwind/rule.h"

namespace pe::malloctrace {

/// The address of a frame: a return address, or that of the instruction itself.
class CodeKey {
 public:
  static constexpr std::uint64_t kExactBit = std::uint64_t{1} << 63;

  CodeKey() = default;
  /// Addresses are below 2^63.
  CodeKey(std::uint64_t avma, bool is_exact) noexcept : bits_(avma | (is_exact ? kExactBit : 0)) {}

  [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] std::uint64_t address() const noexcept { return bits_ & ~kExactBit; }
  [[nodiscard]] bool is_exact() const noexcept { return (bits_ & kExactBit) != 0; }
  /// Returns the address of a byte of the instruction that runs or calls.
  [[nodiscard]] std::uint64_t instruction() const noexcept {
    return address() - (is_exact() ? 0 : 1);
  }

  bool operator==(const CodeKey&) const noexcept = default;

 private:
  std::uint64_t bits_ = 0;
};

struct KnownCode {
  CodeKey key;  ///< 0: a free place
  unwind::Rule rule;
  std::uint32_t number;  ///< of its heap::Code; 0: not code
};
static_assert(sizeof(KnownCode) == 16);

class CodeTable {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start() noexcept { return make_table(kFirstSize) != nullptr; }

  /// nullptr if it is not known.
  [[nodiscard]] const KnownCode* find(CodeKey key) const noexcept { return find_in(table(), key); }

  /// The same in two steps, for many at a time.  mask + 1 entries follow the table.
  struct Table {
    std::uint64_t mask, count;

    [[nodiscard]] KnownCode& entry(std::uint64_t number) const noexcept {
      auto* first = reinterpret_cast<KnownCode*>(const_cast<Table*>(this) + 1);
      return first[number & mask];
    }
  };
  [[nodiscard]] const Table* table() const noexcept {
    return __atomic_load_n(&table_, __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] static const KnownCode* find_in(const Table* table, CodeKey key) noexcept {
    for (std::uint64_t i = place(key);; ++i) {
      const KnownCode& entry = table->entry(i);
      const std::uint64_t found =
          __atomic_load_n(reinterpret_cast<const std::uint64_t*>(&entry.key), __ATOMIC_ACQUIRE);
      if (found == key.bits()) [[likely]]
        return &entry;
      if (found == 0)
        return nullptr;
    }
  }

  // The caller must hold a lock for the rest.

  /// Adds an address; nullptr if there is no memory.
  const KnownCode* insert(const KnownCode& code) noexcept;
  /// Removes the entries for which `is_stale` is true.
  template <typename Predicate>
  void remove_if(Predicate is_stale) noexcept {
    Table* old = table_;
    Table* table = next_table(old->mask + 1);
    if (table == nullptr)
      return;
    for (std::uint64_t i = 0; i <= old->mask; ++i)
      if (old->entry(i).key.bits() != 0 && !is_stale(old->entry(i)))
        put(*table, old->entry(i));
    replace(table);
  }
  [[nodiscard]] std::size_t private_bytes() const noexcept { return bytes_of(*table_); }

 private:
  static constexpr std::uint64_t kFirstSize = 4096;

  static std::uint64_t place(CodeKey key) noexcept {
    // Calls of one function are neighbours, and few are less than eight bytes apart.
    constexpr unsigned kNear = 3;
    constexpr unsigned kFar = 20;
    return key.bits() >> kNear ^ key.bits() >> kFar;
  }
  static std::size_t bytes_of(const Table& table) noexcept {
    return sizeof(Table) + (table.mask + 1) * sizeof(KnownCode);
  }
  static Table* new_table(std::uint64_t size) noexcept;
  Table* next_table(std::uint64_t size) noexcept;
  static KnownCode* put(Table& table, const KnownCode& code) noexcept;
  Table* make_table(std::uint64_t size) noexcept;
  void replace(Table* table) noexcept;

  Table* table_;
  Table* retired_;  ///< the previous one, which may still be read
};

}  // namespace pe::malloctrace
