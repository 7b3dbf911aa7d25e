// SPDX-License-Identifier: MIT
#include "painting/statistics/many_tests.h"

#include <algorithm>

namespace pe::painting {

double asked_below(std::vector<double> smallest, double level) {
  std::ranges::sort(smallest);
  const auto asked = [&](std::size_t questions) {
    const double limit = level / static_cast<double>(questions);
    return static_cast<std::size_t>(std::ranges::upper_bound(smallest, limit) - smallest.begin());
  };
  // Finds the smallest K such that at most K questions can have a p-value of `level` / K or less.
  std::size_t low = 1;
  std::size_t high = std::max<std::size_t>(1, smallest.size());
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (asked(middle) <= middle)
      high = middle;
    else
      low = middle + 1;
  }
  return level / static_cast<double>(low);
}

Decision holm(std::vector<double> p_values, double level) {
  std::ranges::sort(p_values);
  Decision decision{.threshold = level};
  const std::size_t all = p_values.size();
  for (; decision.standing < all; ++decision.standing) {
    decision.threshold = level / static_cast<double>(all - decision.standing);
    if (p_values[decision.standing] > decision.threshold)
      return decision;
  }
  decision.threshold = level;
  return decision;
}

}  // namespace pe::painting
