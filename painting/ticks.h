// Represents counts as integers: multiples of the smallest decimal unit that a profile uses.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

#include "painting/tree/call_tree.h"

namespace pe::painting {

/// a + b, or the largest number if that does not fit.
inline std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

class Ticks {
 public:
  /// Finds the unit of which `whole` and all own counts of `tree` are multiples.  The unit is
  /// coarser if `whole` would not fit 64 bits in it.
  Ticks(const CallTree& tree, folded::Count whole) : Ticks(tree, whole, {}) {}
  /// `more`: other counts that must be multiples of the unit.
  Ticks(const CallTree& tree, folded::Count whole,
        std::initializer_list<std::span<const folded::Count>> more);

  /// Likewise for counts alone.
  explicit Ticks(std::span<const folded::Count> counts);

  /// A tick is 10^-decimals(); decimals() is 0 to 9.
  [[nodiscard]] unsigned decimals() const noexcept { return decimals_; }
  /// Returns `count` in ticks, rounded down, or the largest number if it does not fit.
  [[nodiscard]] std::uint64_t of(folded::Count count) const noexcept {
    std::uint64_t ticks = 0;
    if (__builtin_mul_overflow(count.whole, per_one_, &ticks))
      return std::numeric_limits<std::uint64_t>::max();
    if (count.billionths == 0)  // nearly always, and a division is slow
      return ticks;
    return saturated_sum(ticks, count.billionths / (folded::Count::kOne / per_one_));
  }
  [[nodiscard]] folded::Count count(std::uint64_t ticks) const noexcept {
    return {.whole = ticks / per_one_,
            .billionths =
                static_cast<std::uint32_t>(ticks % per_one_ * (folded::Count::kOne / per_one_))};
  }

 private:
  void refine(folded::Count count);

  unsigned decimals_ = 0;
  std::uint64_t per_one_ = 1;  ///< 10^decimals_
};

}  // namespace pe::painting
