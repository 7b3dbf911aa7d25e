// Walks the tree of debugging information entries, forward only.
// SPDX-License-Identifier: MIT
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace pe::names {

/// The remaining cost that a walk may have: bytes of entries skipped, and ranges checked.
class Budget {
 public:
  explicit Budget(std::uint64_t units) : left_(units) {}
  /// Spends `units`; returns false once the budget is used up.
  bool spend(std::uint64_t units) {
    left_ = units < left_ ? left_ - units : 0;
    return left_ > 0;
  }
  [[nodiscard]] bool is_spent() const { return left_ == 0; }

 private:
  std::uint64_t left_;
};

/// Returns the entry's first child; nullopt if there is none.
std::optional<Dwarf_Die> first_child(Dwarf_Die& die, Budget& budget);
/// Returns the next entry with the same parent.  An invalid entry may claim that its sibling
/// precedes it; this ends the list.
std::optional<Dwarf_Die> next_sibling(Dwarf_Die& die, Budget& budget);

/// Calls `visit(low, high)` for each non-empty code range of the entry, until `visit` returns
/// false.
template <typename Visit>
void for_each_range(Dwarf_Die& die, Budget& budget, Visit&& visit) {
  Dwarf_Addr base = 0;
  Dwarf_Addr low = 0;
  Dwarf_Addr high = 0;
  std::ptrdiff_t at = 0;
  // dwarf_ranges(3) returns a positive number for the next call, 0 at the end, -1 for an error.
  while ((at = dwarf_ranges(&die, at, &base, &low, &high)) > 0 && budget.spend(1))
    if (low < high && !visit(low, high))
      return;
}

/// Returns a string attribute of the entry, or of its abstract origin or declaration; empty if
/// there is none.
std::string_view text_of(Dwarf_Die& die, unsigned attribute);
/// Returns a number attribute of the entry itself; 0 if there is none.
std::uint64_t number_of(Dwarf_Die& die, unsigned attribute);

}  // namespace pe::names
