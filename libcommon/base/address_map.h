// A hash map from addresses to small values, for millions of look-ups.
//
// A slot has key and value, so a look-up needs one cache line, where boost's flat map needs two.
// With 20,000 addresses it needs a quarter of the instructions.  The hash does not resist
// deliberate collisions (hash_bytes.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pe {

/// `Value` converts to bool: false for a Value{}, which means that the map lacks the address.
template <typename Value>
class AddressMap {
 public:
  /// Returns the value of the address, a Value{} if it is new.  The caller then sets it.  The next
  /// call for a new address invalidates the reference.
  Value& operator[](std::uint64_t address) {
    Slot* slot = &slots_[place_of(address)];
    if (!slot->value) {
      // Fuller means longer searches, but fewer cache misses.
      if (4 * (used_ + 1) > 3 * slots_.size()) {
        rebuild(2 * slots_.size(), [](const Slot& /*slot*/) { return true; });
        slot = &slots_[place_of(address)];
      }
      ++used_;
      slot->address = address;
    }
    return slot->value;
  }

  /// Removes each address for which `is_gone(address, value)`.  If there is one, this costs as much
  /// as adding all others.
  template <typename IsGone>
  void erase_if(IsGone&& is_gone) {
    const auto is_to_go = [&](const Slot& slot) {
      return slot.value && is_gone(slot.address, slot.value);
    };
    if (std::ranges::any_of(slots_, is_to_go))
      rebuild(slots_.size(), [&](const Slot& slot) { return !is_to_go(slot); });
  }

 private:
  struct Slot {
    std::uint64_t address = 0;
    Value value{};
  };

  /// Returns the slot of the address, or the empty one where it belongs.
  [[nodiscard]] std::size_t place_of(std::uint64_t address) const {
    // The highest bits of the product depend on all bits of the address (Knuth, 6.4).
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = static_cast<std::size_t>((address * kGolden) >> shift_);
    while (slots_[place].value && slots_[place].address != address)
      place = (place + 1) & mask;
    return place;
  }

  template <typename IsKept>
  void rebuild(std::size_t size, IsKept&& is_kept) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(size));
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(size));
    used_ = 0;
    for (const Slot& slot : old) {
      if (!slot.value || !is_kept(slot))
        continue;
      slots_[place_of(slot.address)] = slot;
      ++used_;
    }
  }

  static constexpr std::size_t kFirstSize = 16;  ///< a power of two, as all sizes
  std::vector<Slot> slots_ = std::vector<Slot>(kFirstSize);
  unsigned shift_ = 64 - std::countr_zero(kFirstSize);
  std::size_t used_ = 0;
};

}  // namespace pe
