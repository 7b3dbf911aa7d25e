// Walks the tree of debugging information entries, forward only.
// SPDX-License-Identifier: MIT
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/budget.h"

namespace pe::names {

/// The remaining cost that a walk may have: bytes of entries read, and ranges checked.
class Effort {
 public:
  /// `spender` pays for the time; null: no limits.
  explicit Effort(std::uint64_t units, Spender* spender = nullptr)
      : left_(units), spender_(spender) {}
  /// Spends `units`; returns false once they are used up, or nobody pays.
  bool spend(std::uint64_t units) {
    constexpr std::uint64_t kUnitsOfTurn = 1024;
    left_ = units < left_ ? left_ - units : 0;
    if (spender_ != nullptr &&
        !spender_->may_go_on(1 + static_cast<std::size_t>(units / kUnitsOfTurn)))
      left_ = 0;
    return left_ > 0;
  }
  [[nodiscard]] bool is_spent() const { return left_ == 0; }
  [[nodiscard]] Spender* spender() const noexcept { return spender_; }

 private:
  std::uint64_t left_;
  Spender* spender_;
};

/// Visits an entry; returns whether to visit those within it.
using EnterEntry = std::function<bool(Dwarf_Die&)>;
/// Called after the entries within one that was entered, with the next entry of the same parent, if
/// there is one.
using LeaveEntry = std::function<void(const std::optional<Dwarf_Die>& next)>;

/// Visits the entries within `root` in the order of the file.  It reads each entry once, whatever
/// their nesting, and spends its bytes.  Invalid entries end the list that they are in, and the
/// lists around it up to an entry that states its sibling.
void walk_entries(Dwarf_Die& root, Effort& effort, const EnterEntry& enter,
                  const LeaveEntry& leave);

/// Calls `visit(low, high)` for each non-empty code range of the entry, until `visit` returns
/// false.
template <typename Visit>
void for_each_range(Dwarf_Die& die, Effort& effort, Visit&& visit) {
  Dwarf_Addr base = 0;
  Dwarf_Addr low = 0;
  Dwarf_Addr high = 0;
  std::ptrdiff_t at = 0;
  // dwarf_ranges(3) returns a positive number for the next call, 0 at the end, -1 for an error.
  while ((at = dwarf_ranges(&die, at, &base, &low, &high)) > 0 && effort.spend(1))
    if (low < high && !visit(low, high))
      return;
}

/// Returns a string attribute of the entry, or of its abstract origin or declaration; empty if
/// there is none.
std::string_view text_of(Dwarf_Die& die, unsigned attribute);
/// Returns a number attribute of the entry itself; 0 if there is none.
std::uint64_t number_of(Dwarf_Die& die, unsigned attribute);

// Builds the full name of a function: "pe::(anonymous namespace)::helper".
//
// Functions that are local to a file (static, or in an anonymous namespace) have no linkage name
// with their full name.  So the full name comes from the namespaces, classes and functions around
// their declaration.  libdw does not report the scope of an entry.  So we record the start and end
// of each scope when we list the functions of a unit.

/// The scopes of one unit, in the order of their entries.
class Scopes {
 public:
  static constexpr std::uint32_t kNoScope = 0xffffffff;

  /// Starts a scope in `parent`, which may be kNoScope; returns its number.
  std::uint32_t open(Dwarf_Off entry, std::uint32_t parent);
  /// Ends a scope at `end`, the next entry outside of it.  An unclosed scope ends with its parent.
  void close(std::uint32_t scope, Dwarf_Off end) { scopes_[scope].end = end; }
  /// Returns the entry of the innermost scope around `entry`; nullopt if there is none.
  [[nodiscard]] std::optional<Dwarf_Off> around(Dwarf_Off entry) const;

 private:
  struct Scope {
    Dwarf_Off entry, end;
    std::uint32_t parent;
  };
  std::vector<Scope> scopes_;
};

class FullNames {
 public:
  using OnFunction = std::function<void(Dwarf_Die&)>;

  /// Calls `on_function` for each function of a unit, also for those in namespaces, classes and
  /// other functions.
  void list_functions(Dwarf_Die& unit, Effort& effort, const OnFunction& on_function);

  /// Returns the name of a function, with its scopes if the unit is C++.  The view lives as long as
  /// this object.
  std::string_view of(Dwarf_Die& function, Effort& effort);

 private:
  const Scopes& scopes_of(Dwarf_Die& unit, Effort& effort);
  std::string full_name(Dwarf_Die declaration, Effort& effort);
  std::optional<Dwarf_Die> around(Dwarf_Die& entry, Effort& effort);

  // The key is the place of the entry in memory, because units may be in several files.
  std::unordered_map<const void*, Scopes> scopes_;
  std::unordered_map<const void*, std::string> names_;
};

}  // namespace pe::names
