// Work for targets that the budget did not allow, until it allows it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/budget.h"
#include "base/clock.h"

namespace pe {

/// One item for each target.
template <typename Item>
class Postponed {
 public:
  void add(std::uint32_t target, Item item) { items_.insert_or_assign(target, std::move(item)); }
  void forget(std::uint32_t target) { items_.erase(target); }
  [[nodiscard]] bool contains(std::uint32_t target) const { return items_.contains(target); }

  /// Removes the items whose target may spend by now, and calls `again(target, item)` for each,
  /// which may add it again.  Does nothing if it did so within the last 100 ms.
  template <typename Again>
  void retry(Budget& budget, const Again& again) {
    constexpr std::uint64_t kRestNs = 100'000'000;
    if (items_.empty())
      return;
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns - retried_ns_ < kRestNs)
      return;
    retried_ns_ = now_ns;
    for (auto& [target, item] : std::exchange(items_, {}))
      if (budget.lacking(target, now_ns))
        add(target, std::move(item));
      else
        again(target, item);
  }

 private:
  std::unordered_map<std::uint32_t, Item> items_;
  std::uint64_t retried_ns_ = 0;
};

}  // namespace pe
