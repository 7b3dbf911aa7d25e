// SPDX-License-Identifier: MIT
#include "painting/ticks.h"

namespace pe::painting {

Ticks::Ticks(std::span<const folded::Count> counts) {
  for (const folded::Count count : counts)
    refine(count);
}

Ticks::Ticks(const CallTree& tree, folded::Count whole,
             std::initializer_list<std::span<const folded::Count>> more) {
  refine(whole);
  for (NodeId node = kRoot; node < tree.size(); ++node)
    refine(tree.self(node));
  for (const auto& counts : more)
    for (const folded::Count count : counts)
      refine(count);
  while (decimals_ > 0 && of(whole) == std::numeric_limits<std::uint64_t>::max()) {
    --decimals_;
    per_one_ /= 10;
  }
}

void Ticks::refine(folded::Count count) {
  constexpr unsigned kMost = 9;
  while (count.billionths != 0 && decimals_ < kMost &&
         count.billionths % (folded::Count::kOne / per_one_) != 0) {
    ++decimals_;
    per_one_ *= 10;
  }
}

}  // namespace pe::painting
