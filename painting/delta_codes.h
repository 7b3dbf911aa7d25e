// Encodes differences as unsigned integers; small changes get small integers.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "painting/ticks.h"
#include "painting/tree/call_tree.h"

namespace pe::painting {

class DeltaCodes {
 public:
  /// The unit is a tick if all differences are whole ticks, otherwise it is finer.
  DeltaCodes(const CallTree& tree, const Ticks& ticks, bool negate);

  /// A difference is in units of 10^-decimals().
  [[nodiscard]] unsigned decimals() const noexcept { return decimals_; }
  /// The largest difference, without its sign, in units.
  [[nodiscard]] std::uint64_t largest() const { return units(largest_); }
  /// Returns 0 if `delta` is not known, 1 + 2 n for n units, and 2 n for -n units.
  [[nodiscard]] std::uint64_t code(std::optional<double> delta) const;

 private:
  [[nodiscard]] std::uint64_t units(double size) const;

  double largest_;
  bool negate_;
  unsigned decimals_;
  double per_one_;  ///< 10^decimals_
};

}  // namespace pe::painting
