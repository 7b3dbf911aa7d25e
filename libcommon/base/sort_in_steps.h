// Sorts long lists in short steps, between which a recording can end.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/budget.h"

namespace pe {

/// Returns what sort_in_steps() asks if `spender` pays; null: no limits.
inline auto paid_by(Spender* spender) {
  constexpr std::size_t kWholeTurn = 64;
  return [spender] { return spender == nullptr || spender->may_go_on(kWholeTurn); };
}

/// Sorts stably.  Calls `may_go_on` before each step.  Returns false, with an order that means
/// nothing, if that does.  A step takes up to 20 ms for 4 million elements of 24 bytes, and lists
/// that are sorted, as linkers write them, take one step.
template <typename T, typename Less, typename MayGoOn>
bool sort_in_steps(std::vector<T>& all, const Less& less, const MayGoOn& may_go_on) {
  constexpr std::size_t kPiece = std::size_t{1} << 15;
  const auto at = [&all](std::size_t number) {
    return all.begin() + static_cast<std::ptrdiff_t>(std::min(number, all.size()));
  };
  if (std::is_sorted(all.begin(), all.end(), less))
    return true;
  for (std::size_t first = 0; first < all.size(); first += kPiece) {
    if (!may_go_on())
      return false;
    std::stable_sort(at(first), at(first + kPiece), less);
  }
  for (std::size_t width = kPiece; width < all.size(); width *= 2)
    for (std::size_t first = 0; first + width < all.size(); first += 2 * width) {
      if (!may_go_on())
        return false;
      std::inplace_merge(at(first), at(first + width), at(first + 2 * width), less);
    }
  return true;
}

}  // namespace pe
