// SPDX-License-Identifier: MIT
#include "names/dwarf/die.h"

namespace pe::names {
namespace {

/// Returns `next` if it is after `die` and the effort covers the distance; spends that.
std::optional<Dwarf_Die> if_ahead(Dwarf_Die& die, Dwarf_Die& next, Effort& effort) {
  const Dwarf_Off from = dwarf_dieoffset(&die);
  const Dwarf_Off to = dwarf_dieoffset(&next);
  if (to <= from || !effort.spend(to - from))
    return std::nullopt;
  return next;
}

}  // namespace

std::optional<Dwarf_Die> first_child(Dwarf_Die& die, Effort& effort) {
  Dwarf_Die child;
  if (effort.is_spent() || dwarf_child(&die, &child) != 0)
    return std::nullopt;
  return if_ahead(die, child, effort);
}

std::optional<Dwarf_Die> next_sibling(Dwarf_Die& die, Effort& effort) {
  Dwarf_Die sibling;
  if (effort.is_spent())
    return std::nullopt;
  if (dwarf_siblingof(&die, &sibling) != 0) {
    // To find that there is none, libdw has read all that is within the entry.
    if (dwarf_haschildren(&die) != 0)
      effort.check();
    return std::nullopt;
  }
  return if_ahead(die, sibling, effort);
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

}  // namespace pe::names
