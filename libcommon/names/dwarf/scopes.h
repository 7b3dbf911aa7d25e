// What a function is called in full: "pe::(anonymous namespace)::helper".
//
// Functions of one file only (static, or in an anonymous namespace) have no linkage name, which
// would tell, so that the namespaces, classes and functions around their declaration must.  libdw
// does not say what an entry stands in; where scopes begin and end is noted when the functions of a
// unit are listed.
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
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// Begins one in `parent`, or kNone; returns its number.
  std::uint32_t open(Dwarf_Off entry, std::uint32_t parent);
  /// The next entry that is not in it; a scope that is not closed ends with its parent.
  void close(std::uint32_t scope, Dwarf_Off end) { scopes_[scope].end = end; }
  /// The entry of the innermost scope that `entry` stands in; nullopt: in none.
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

  /// Calls `on_function` for each function of a unit: they may stand in namespaces, classes and
  /// each other.
  void list_functions(Dwarf_Die& unit, Budget& budget, const OnFunction& on_function);

  /// With what it stands in, where the unit is of C++; the view lives as long as this.
  std::string_view of(Dwarf_Die& function, Budget& budget);

 private:
  const Scopes& scopes_of(Dwarf_Die& unit, Budget& budget);
  std::string full_name(Dwarf_Die declaration, Budget& budget);
  std::optional<Dwarf_Die> around(Dwarf_Die& entry, Budget& budget);

  // By where the unit's, the function's entry is in memory: they may be of several files.
  std::unordered_map<const void*, Scopes> scopes_;
  std::unordered_map<const void*, std::string> names_;
};

}  // namespace pe::names
