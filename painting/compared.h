// Counts of a tree's nodes in two profiles, for a page that shows both.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "folded/count.h"
#include "painting/statistics/noise.h"

namespace pe::painting {

/// By node.
struct ComparedNodes {
  std::vector<folded::Count> before, after;
  std::vector<Change> changes;  ///< of shares
  /// Counts that are 100 % of each profile; 0 if the profile is empty.
  double whole_before = 0, whole_after = 0;
  double largest = 0;       ///< change of a share, unsigned, that gets the strongest colour
  bool dims_noise = false;  ///< changes that are not beyond noise are drawn in grey

  [[nodiscard]] double share_before(std::size_t node) const {
    return whole_before > 0 ? before[node].as_double() / whole_before : 0;
  }
  [[nodiscard]] double share_after(std::size_t node) const {
    return whole_after > 0 ? after[node].as_double() / whole_after : 0;
  }
  [[nodiscard]] double change(std::size_t node) const {
    return share_after(node) - share_before(node);
  }
  [[nodiscard]] bool is_new(std::size_t node) const {
    return before[node].is_zero() && !after[node].is_zero();
  }
  [[nodiscard]] bool is_gone(std::size_t node) const {
    return after[node].is_zero() && !before[node].is_zero();
  }
  [[nodiscard]] bool is_dim(std::size_t node) const {
    return dims_noise && changes[node].noise != Noise::kBeyond;
  }
  /// The change as colours show it.  Changes that may be noise are only tinted.
  [[nodiscard]] double shade(std::size_t node) const {
    const Noise noise = changes[node].noise;
    const bool is_tint = noise == Noise::kWithin || noise == Noise::kTooRare;
    const double limit = is_tint ? kTint * largest : largest;
    return std::clamp(change(node), -limit, limit);
  }

  static constexpr double kTint = 0.19;  ///< of the strongest colour, as in page/compared.js
};

}  // namespace pe::painting
