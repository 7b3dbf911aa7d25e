// SPDX-License-Identifier: MIT
#include "names/dwarf/die.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace pe::names {
namespace {

bool states_sibling(Dwarf_Die& die) { return dwarf_hasattr(&die, DW_AT_sibling) != 0; }

/// Goes from entry to entry.  libdw finds the sibling of an entry that does not state it by reading
/// all that is within, so it is asked only for entries that have nothing within them.  Behind those
/// that have, the walk itself arrives.
class EntryWalk {
 public:
  EntryWalk(Dwarf_Die& root, Effort& effort)
      : dwarf_(dwarf_cu_getdwarf(root.cu)), cu_(root.cu), effort_(effort) {}

  void run(Dwarf_Die& root, const EnterEntry& enter, const LeaveEntry& leave) {
    at_ = first_within(root);
    while (at_ || passed_ > 0 || !path_.empty())
      if (at_)
        visit(*at_, enter, leave);
      else if (passed_ > 0)
        leave_passed();
      else
        leave_entered(leave);
  }

 private:
  void visit(Dwarf_Die die, const EnterEntry& enter, const LeaveEntry& leave) {
    const bool is_entered = passed_ == 0 && enter(die);
    const auto child = is_entered || !states_sibling(die) ? first_within(die) : std::nullopt;
    if (child && is_entered)
      path_.push_back(die);
    else if (child)
      ++passed_;
    at_ = child ? child : sibling(die);
    if (!child && is_entered)
      leave(at_);
  }

  void leave_passed() {
    at_ = behind_list();
    passed_ = at_ || list_end_ != nullptr ? passed_ - 1 : 0;
  }

  void leave_entered(const LeaveEntry& leave) {
    Dwarf_Die around = path_.back();
    path_.pop_back();
    at_ = behind_list();
    if (!at_ && list_end_ == nullptr && states_sibling(around))
      at_ = sibling(around);
    leave(at_);
  }

  /// Returns the first entry within `die`.
  std::optional<Dwarf_Die> first_within(Dwarf_Die& die) {
    Dwarf_Die child;
    if (effort_.is_spent() || dwarf_child(&die, &child) != 0)
      return std::nullopt;
    return if_ahead(die, child);
  }

  /// Returns the next entry of the same parent.  `die` must state it, or have no entries within.
  std::optional<Dwarf_Die> sibling(Dwarf_Die& die) {
    Dwarf_Die next{};
    list_end_ = nullptr;
    if (effort_.is_spent())
      return std::nullopt;
    const int result = dwarf_siblingof(&die, &next);
    if (result == 0)
      return if_ahead(die, next);
    // libdw leaves the address of the null entry that ends the list, if it has found that.
    effort_.spend(1);
    list_end_ = result > 0 ? static_cast<std::byte*>(next.addr) : nullptr;
    return std::nullopt;
  }

  /// After the end of a list, returns the next entry in the list around it.
  std::optional<Dwarf_Die> behind_list() {
    Dwarf_Die next;
    std::byte* const behind = list_end_ != nullptr ? list_end_ + 1 : nullptr;
    list_end_ = nullptr;
    if (behind == nullptr || !effort_.spend(1) ||
        dwarf_die_addr_die(dwarf_, behind, &next) == nullptr || next.cu != cu_)
      return std::nullopt;
    if (*behind != std::byte{0})
      return next;
    list_end_ = behind;
    return std::nullopt;
  }

  /// Returns `next` if it is after `die` and the effort covers the distance; spends that.
  std::optional<Dwarf_Die> if_ahead(Dwarf_Die& die, Dwarf_Die& next) {
    const Dwarf_Off from = dwarf_dieoffset(&die);
    const Dwarf_Off to = dwarf_dieoffset(&next);
    if (to <= from || !effort_.spend(to - from))
      return std::nullopt;
    return next;
  }

  Dwarf* dwarf_;
  const void* cu_;
  Effort& effort_;
  std::optional<Dwarf_Die> at_;
  std::vector<Dwarf_Die> path_;    ///< the entries around the current one that were entered,
  std::size_t passed_ = 0;         ///< and how many within them were not
  std::byte* list_end_ = nullptr;  ///< the null entry; null: not known, or not at an end
};

}  // namespace

void walk_entries(Dwarf_Die& root, Effort& effort, const EnterEntry& enter,
                  const LeaveEntry& leave) {
  EntryWalk(root, effort).run(root, enter, leave);
}

std::string_view text_of(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  if (dwarf_attr_integrate(&die, attribute, &found) == nullptr)
    return {};
  const char* text = dwarf_formstring(&found);
  return text == nullptr ? std::string_view{} : text;
}

std::uint64_t number_of(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Word number = 0;
  if (dwarf_attr(&die, attribute, &found) == nullptr || dwarf_formudata(&found, &number) != 0)
    return 0;
  return number;
}

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
