// What the nodes of a tree counted in two profiles, for a page that shows both.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "folded/count.h"
#include "picture/statistics/noise.h"

namespace pe::picture {

/// By node.
struct ComparedNodes {
  std::vector<folded::Count> before, after;
  std::vector<Change> changes;  ///< of shares
  /// Counts that shares are of; 0: there are none.
  double whole_before = 0, whole_after = 0;
  double largest = 0;       ///< change of a share, without its sign: that of the strongest colour
  bool dims_noise = false;  ///< what is not beyond noise is drawn in grey

  [[nodiscard]] double share_before(std::size_t node) const {
    return whole_before > 0 ? before[node].as_double() / whole_before : 0;
  }
  [[nodiscard]] double share_after(std::size_t node) const {
    return whole_after > 0 ? after[node].as_double() / whole_after : 0;
  }
  [[nodiscard]] double change(std::size_t node) const {
    return share_after(node) - share_before(node);
  }
  /// The change as colours show it: what may be noise is no more than a tint.
  [[nodiscard]] double shade(std::size_t node) const {
    const Noise noise = changes[node].noise;
    const bool is_tint = noise == Noise::kWithin || noise == Noise::kTooRare;
    const double limit = is_tint ? kTint * largest : largest;
    return std::clamp(change(node), -limit, limit);
  }

  static constexpr double kTint = 0.19;  ///< of the strongest colour; picture/page/compared.js, too
};

}  // namespace pe::picture
