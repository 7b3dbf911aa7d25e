// SPDX-License-Identifier: MIT
#include "names/dwarf/scopes.h"

#include <algorithm>
#include <iterator>

namespace pe::names {
namespace {

constexpr std::size_t kMaxNesting = 64;  ///< of namespaces, classes and functions
constexpr std::size_t kMaxScopeBytes = 8UL * 1024;

bool is_scope(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
         tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_subprogram ||
         tag == DW_TAG_lexical_block;
}

bool is_cplusplus(Dwarf_Die& unit) {
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b:  // DW_LANG_C_plus_plus_17, newer than this libdw
    case 0x2c:  // DW_LANG_C_plus_plus_20
      return true;
    default:
      return false;
  }
}

/// Follows the links from an instance to its abstract origin, and from a definition to its
/// declaration.
Dwarf_Die declaration_of(Dwarf_Die entry) {
  constexpr int kMaxSteps = 16;
  for (int step = 0; step < kMaxSteps; ++step) {
    Dwarf_Attribute link;
    Dwarf_Die next;
    if ((dwarf_attr(&entry, DW_AT_abstract_origin, &link) == nullptr &&
         dwarf_attr(&entry, DW_AT_specification, &link) == nullptr) ||
        dwarf_formref_die(&link, &next) == nullptr)
      break;
    entry = next;
  }
  return entry;
}

/// Returns the name that demanglers give to the scope around `inner`; empty for a block.
std::string_view name_of(Dwarf_Die& scope, std::string_view inner) {
  const std::string_view name = text_of(scope, DW_AT_name);
  if (!name.empty() || dwarf_tag(&scope) == DW_TAG_lexical_block)
    return name;
  if (dwarf_tag(&scope) == DW_TAG_namespace)
    return "(anonymous namespace)";
  return inner.starts_with("operator()") ? "{lambda}" : "{unnamed type}";
}

}  // namespace

std::uint32_t Scopes::open(Dwarf_Off entry, std::uint32_t parent) {
  scopes_.push_back({entry, ~Dwarf_Off{0}, parent});
  return static_cast<std::uint32_t>(scopes_.size() - 1);
}

std::optional<Dwarf_Off> Scopes::around(Dwarf_Off entry) const {
  const auto behind =
      std::lower_bound(scopes_.begin(), scopes_.end(), entry,
                       [](const Scope& scope, Dwarf_Off wanted) { return scope.entry < wanted; });
  if (behind == scopes_.begin())
    return std::nullopt;
  auto innermost = static_cast<std::uint32_t>(behind - scopes_.begin() - 1);
  for (std::uint32_t scope = innermost; scope != kNoScope; scope = scopes_[scope].parent)
    if (scopes_[scope].end <= entry)
      innermost = scopes_[scope].parent;
  return innermost == kNoScope ? std::nullopt : std::optional(scopes_[innermost].entry);
}

void FullNames::list_functions(Dwarf_Die& unit, Effort& effort, const OnFunction& on_function) {
  Scopes& scopes = scopes_[unit.addr];
  scopes = {};
  std::vector<std::uint32_t> path{Scopes::kNoScope};  // the scopes around the current entry
  const auto enter = [&](Dwarf_Die& entry) {
    const int tag = dwarf_tag(&entry);
    const bool is_function = tag == DW_TAG_subprogram;
    // The declaration of a function has neither code nor functions within it.
    const bool is_declaration = is_function && dwarf_hasattr(&entry, DW_AT_declaration) != 0;
    if (is_function && !is_declaration)
      on_function(entry);
    if (!is_scope(tag) || is_declaration || path.size() >= kMaxNesting ||
        dwarf_haschildren(&entry) <= 0)
      return false;
    path.push_back(scopes.open(dwarf_dieoffset(&entry), path.back()));
    return true;
  };
  walk_entries(unit, effort, enter, [&](const std::optional<Dwarf_Die>& next) {
    if (Dwarf_Die die = next.value_or(Dwarf_Die{}); next)
      scopes.close(path.back(), dwarf_dieoffset(&die));
    path.pop_back();
  });
}

const Scopes& FullNames::scopes_of(Dwarf_Die& unit, Effort& effort) {
  if (const auto known = scopes_.find(unit.addr); known != scopes_.end())
    return known->second;
  list_functions(unit, effort, [](Dwarf_Die&) {});
  return scopes_[unit.addr];
}

std::optional<Dwarf_Die> FullNames::around(Dwarf_Die& entry, Effort& effort) {
  Dwarf_Die unit;
  if (dwarf_diecu(&entry, &unit, nullptr, nullptr) == nullptr)
    return std::nullopt;
  const auto offset = scopes_of(unit, effort).around(dwarf_dieoffset(&entry));
  Dwarf_Die scope;
  if (!offset || dwarf_offdie(dwarf_cu_getdwarf(entry.cu), *offset, &scope) == nullptr)
    return std::nullopt;
  return scope;
}

std::string_view FullNames::of(Dwarf_Die& function, Effort& effort) {
  Dwarf_Die unit;
  const std::string_view plain = text_of(function, DW_AT_name);
  if (plain.empty() || dwarf_diecu(&function, &unit, nullptr, nullptr) == nullptr ||
      !is_cplusplus(unit))
    return plain;
  const Dwarf_Die declaration = declaration_of(function);
  const auto [name, is_new] = names_.try_emplace(declaration.addr);
  if (is_new)
    name->second = full_name(declaration, effort);
  return name->second;
}

std::string FullNames::full_name(Dwarf_Die declaration, Effort& effort) {
  std::string name(text_of(declaration, DW_AT_name));
  for (std::size_t level = 0; level < kMaxNesting; ++level) {
    const auto scope = around(declaration, effort);
    if (!scope)
      break;
    declaration = declaration_of(*scope);
    const std::string_view outer = name_of(declaration, name);
    if (outer.empty())
      continue;
    if (name.size() + outer.size() > kMaxScopeBytes)
      break;
    name.insert(0, "::").insert(0, outer);
  }
  return name;
}

}  // namespace pe::names
