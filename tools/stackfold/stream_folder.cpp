// SPDX-License-Identifier: MIT
#include "stackfold/stream_folder.h"

#include <algorithm>

#include "base/clock.h"
#include "stackfold/frame_text.h"

namespace pe::fold {

StreamFolder::StreamFolder(Input& input, const Options& options, folded::FoldedCounts& counts)
    : options_(options),
      counts_(counts),
      in_ns_(counts.frames()),
      locations_(counts.frames(), options),
      stacks_(input, options, locations_) {}

StreamReport StreamFolder::fold() {
  StreamReport report = stacks_.read([this](const Stacks::Taken& taken) { take(taken); });
  counts_.add_divided(in_ns_, kNsPerUs);
  return report;
}

void StreamFolder::take(const Stacks::Taken& taken) {
  auto& stack = taken.leaf_first;
  stack.push_back(
      locations_.root(taken.sample.pid, taken.sample.tid, stacks_.session().processes()));
  if (options_.all_events)
    stack.push_back(locations_.word(clean_name(taken.event.name)));
  std::reverse(stack.begin(), stack.end());  // now root first
  // As in chain graphs, the waker's stack follows "--" upside down, so that both leaves meet at
  // "--".
  if (!taken.waker.empty()) {
    stack.push_back(locations_.word("--"));
    stack.insert(stack.end(), taken.waker.begin(), taken.waker.end());
  }
  // Sums of time are in nanoseconds and printed in microseconds, as in offcputime.
  const bool is_time = taken.event.unit == "ns" && options_.weight == Weight::kByUnit;
  (is_time ? in_ns_ : counts_).add(stack, {.whole = weight_of(taken)});
}

std::uint64_t StreamFolder::weight_of(const Stacks::Taken& taken) const {
  const bool by_period = options_.weight == Weight::kPeriod ||
                         (options_.weight == Weight::kByUnit && is_weighed_by_period(taken.event));
  return by_period ? taken.sample.period : 1;
}

}  // namespace pe::fold
