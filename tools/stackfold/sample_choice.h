// Which samples of an input are folded, and how many are not.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stackfold/options.h"

namespace pe::fold {

/// Counts what it leaves out, for the closing line.
struct SampleChoice {
  std::uint64_t other_events = 0;  ///< samples of events that were not asked for
  std::uint64_t outside_time = 0;  ///< samples that --time leaves out
  std::uint64_t without_time = 0;  ///< those of which it is not known
  std::string folded_event;        ///< the event that is folded, where samples name theirs

  /// Samples of different events do not add up to anything: one event is folded, the one asked
  /// for or, where folded_event is empty yet, the first met; with --all-events all are.
  bool takes_event(const Options& options, std::string_view event);

  /// Is a sample of that time, in microseconds (nullopt: it has none), within --time?
  bool takes_time(const Options& options, std::optional<std::uint64_t> time_us);
};

}  // namespace pe::fold
