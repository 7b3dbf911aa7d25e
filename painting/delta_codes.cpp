// SPDX-License-Identifier: MIT
#include "painting/delta_codes.h"

#include <cmath>

namespace pe::painting {
namespace {

constexpr unsigned kFiner = 4;       // decimals: far finer than a tooltip shows
constexpr double kMostUnits = 1e15;  // the script's numbers represent it exactly

bool are_whole(const CallTree& tree, double per_one) {
  for (NodeId node = kRoot; node < tree.size(); ++node) {
    const double units = tree.delta(node).value_or(0) * per_one;
    if (std::abs(units - std::nearbyint(units)) > 1e-6)
      return false;
  }
  return true;
}

}  // namespace

DeltaCodes::DeltaCodes(const CallTree& tree, const Ticks& ticks, bool negate)
    : largest_(tree.largest_delta()),
      negate_(negate),
      decimals_(ticks.decimals()),
      per_one_(std::pow(10, decimals_)) {
  if (!tree.is_differential())
    return;
  if (!are_whole(tree, per_one_))
    decimals_ += kFiner;
  while (decimals_ > 0 && largest_ * std::pow(10, decimals_) > kMostUnits)
    --decimals_;
  per_one_ = std::pow(10, decimals_);
}

std::uint64_t DeltaCodes::units(double size) const {
  return static_cast<std::uint64_t>(std::llround(std::fmin(std::abs(size) * per_one_, 9e18)));
}

std::uint64_t DeltaCodes::code(std::optional<double> delta) const {
  if (!delta)
    return 0;
  const double shown = negate_ ? -*delta : *delta;
  const std::uint64_t size = units(shown);
  return shown < 0 && size > 0 ? 2 * size : 1 + 2 * size;
}

}  // namespace pe::painting
