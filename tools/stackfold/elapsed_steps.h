// Elapsed time in steps: --weight elapsed with --every.
//
// The recorder sums up the waits of a thread in one place for a tenth of a second, on a busy
// machine for longer, and a sum is drawn as one wait up to the end of its last.  So a step may have
// more time than it lasts, where several waits took turns.  The rest was in earlier steps.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "stackfold/folded_counts.h"

namespace pe::fold {

/// The time of a stack in a step.
struct TimeInStep {
  std::int32_t step;
  folded::StackId stack;
  std::uint64_t ns;
};

/// Returns the counts in each step, in the order of steps, scaled so that they add up to `ns`.
/// There must be a timeline.
std::vector<TimeInStep> scaled_steps(folded::FoldedCounts& counts, std::uint64_t ns);

/// Moves what exceeds the room of a step, as `room_of` returns it, to earlier ones; the step
/// `first` has room for all.  `times` are in the order of steps, the result in reverse.
std::vector<TimeInStep> spread_back(const std::vector<TimeInStep>& times, std::int32_t first,
                                    const std::function<std::uint64_t(std::int32_t)>& room_of);

}  // namespace pe::fold
