// Differences as unsigned integers, small ones for small changes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "calltree/call_tree.h"
#include "flame/ticks.h"

namespace pe::flame {

class DeltaCodes {
 public:
  /// In ticks, if all differences are whole ones; in finer units otherwise.
  DeltaCodes(const calltree::CallTree& tree, const Ticks& ticks, bool negate);

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

}  // namespace pe::flame
