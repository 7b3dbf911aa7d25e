// Builds the full name of a function: "pe::(anonymous namespace)::helper".
//
// Functions that are local to a file (static, or in an anonymous namespace) have no linkage name
// with their full name.  So the full name comes from the namespaces, classes and functions around
// their declaration.  libdw does not report the scope of an entry.  So we record the start and end
// of each scope when we list the functions of a unit.
// SPDX-License-Identifier: MIT
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "names/dwarf/die.h"

namespace pe::names {

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
