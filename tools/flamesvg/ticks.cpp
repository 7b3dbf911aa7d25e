// SPDX-License-Identifier: MIT
#include "flamesvg/ticks.h"

namespace pe::flamesvg {

Ticks::Ticks(const calltree::CallTree& tree, folded::Count whole) {
  constexpr unsigned kMost = 9;
  const auto refine = [&](folded::Count count) {
    while (count.billionths != 0 && decimals_ < kMost &&
           count.billionths % (folded::Count::kOne / per_one_) != 0) {
      ++decimals_;
      per_one_ *= 10;
    }
  };
  refine(whole);
  for (calltree::NodeId node = calltree::kRoot; node < tree.size(); ++node)
    refine(tree.self(node));
  while (decimals_ > 0 && of(whole) == std::numeric_limits<std::uint64_t>::max()) {
    --decimals_;
    per_one_ /= 10;
  }
}

}  // namespace pe::flamesvg
