// SPDX-License-Identifier: MIT
#include "stackfold/exports/folded_profile.h"

#include <vector>

#include "stackfold/frame_text.h"

namespace pe::fold::exports {

std::size_t add_folded(const folded::FoldedCounts& counts, bool with_times, Profile& profile) {
  if (counts.empty())
    return 0;
  const Index event = profile.event({.name = "samples", .unit = "count", .by_period = true});
  const Index thread = profile.thread(0, 0, {});
  std::vector<Index> place_of(counts.frames().size(), kNone);
  constexpr std::uint64_t kNsInMs = 1'000'000;
  std::size_t rounded = 0, order = 0;
  counts.for_each([&](std::span<const folded::FrameId> frames, folded::Count count) {
    Index stack = kNone;
    for (const folded::FrameId frame : frames) {
      if (place_of[frame] == kNone)
        place_of[frame] = profile.word(counts.frames()[frame]);
      stack = profile.stack(stack, place_of[frame]);
    }
    rounded += count.billionths != 0 ? 1 : 0;
    // What is not zero is not to vanish.
    const std::uint32_t up_from = count.whole == 0 ? 1 : folded::Count::kOne / 2;
    const bool is_up = count.billionths >= up_from && count.whole + 1 != 0;
    const std::uint64_t whole = count.whole + (is_up ? 1 : 0);
    profile.add(
        Sum{.stack = stack, .thread = thread, .event = event, .samples = whole, .period = whole});
    if (!with_times)
      return;
    profile.add(TimedSample{.time_ns = profile.first_time_ns + kNsInMs * order++,
                            .period = whole,
                            .stack = stack,
                            .thread = thread,
                            .event = event});
  });
  return rounded;
}

}  // namespace pe::fold::exports
