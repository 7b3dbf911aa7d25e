// SPDX-License-Identifier: MIT
#include "names/dwarf/die.h"

#include <cstddef>
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

}  // namespace pe::names
