// SPDX-License-Identifier: MIT
#include "stackfold/refine.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace pe::fold {

Refiner::Refiner(const Options& options)
    : is_recursive_(options.is_recursive),
      include_("include", options.include),
      exclude_("exclude", options.exclude) {}

LeftOut Refiner::apply(folded::FoldedCounts& from, folded::FoldedCounts& to) {
  LeftOut left_out;
  std::vector<folded::FrameId> kept;
  std::vector<std::optional<folded::StackId>> numbers;  // of the stacks in `to`
  const folded::FrameTable& table = to.frames();
  from.for_each([&](std::span<const folded::FrameId> frames, folded::Count count) {
    (void)left_out.of.add(count);  // saturates at Count::max(), as the output does
    if ((!include_.is_empty() && !include_.matches_any(frames, table)) ||
        exclude_.matches_any(frames, table)) {
      ++left_out.stacks;
      (void)left_out.count.add(count);
      numbers.emplace_back();
      return;
    }
    kept.assign(frames.begin(), frames.end());
    if (is_recursive_)
      kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    numbers.emplace_back(to.add(kept, count));
  });
  if (folded::Timeline* const timeline = from.timeline()) {
    timeline->renumber(numbers);
    to.set_timeline(std::move(*timeline));
  }
  return left_out;
}

}  // namespace pe::fold
