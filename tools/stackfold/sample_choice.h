// Chooses the samples of an input to fold, and counts the others.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stackfold/options.h"

namespace pe::fold {

/// Counts the samples that it leaves out, for the closing line.
struct SampleChoice {
  std::uint64_t other_events = 0;  ///< samples of events that were not requested
  std::uint64_t outside_time = 0;  ///< samples that --time leaves out
  std::uint64_t without_time = 0;  ///< samples without a time, if --time or --every is given
  std::string folded_event;        ///< the event to fold, if samples name their event

  /// The sum of samples of different events means nothing, so only folded_event is accepted.  If
  /// that is still empty, it becomes `event`.  With --all-events, every event is accepted.
  bool takes_event(const Options& options, std::string_view event);

  /// Is a sample's time, in microseconds (nullopt: it has none), within --time?  With --every, a
  /// sample needs a time.
  bool takes_time(const Options& options, std::optional<std::uint64_t> time_us);
};

}  // namespace pe::fold
