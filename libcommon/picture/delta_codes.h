// Differences as unsigned integers, small ones for small changes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "picture/ticks.h"
#include "picture/tree/call_tree.h"

namespace pe::picture {

class DeltaCodes {
 public:
  /// In ticks, if all differences are whole ones; in finer units otherwise.
  DeltaCodes(const CallTree& tree, const Ticks& ticks, bool negate);

  /// A difference is in units of 10^-decimals().
  [[nodiscard]] unsigned decimals() const noexcept { return decimals_; }
  /// The largest, without its sign.
  [[nodiscard]] std::uint64_t largest() const { return units(largest_); }
  /// 0: not known; else 1 + 2 n for n units, 1 + 2 n - 1 for -n.
  [[nodiscard]] std::uint64_t code(std::optional<double> delta) const;

 private:
  [[nodiscard]] std::uint64_t units(double size) const;

  double largest_;
  bool negate_;
  unsigned decimals_;
  double per_one_;  ///< 10^decimals_
};

}  // namespace pe::picture
