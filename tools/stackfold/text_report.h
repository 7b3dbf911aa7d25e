// The result of reading a text input, for the closing line.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stackfold/options.h"

namespace pe::fold {

// Chooses the samples of an input to fold, and counts the others.

/// Counts the samples that it leaves out, for the closing line.
struct SampleChoice {
  std::uint64_t other_events = 0;  ///< samples of events that were not requested
  std::uint64_t outside_time = 0;  ///< samples that --time leaves out
  std::uint64_t without_time = 0;  ///< samples without a time, if --time or --every is given
  std::string folded_event;        ///< the event to fold, if samples name their event
  stream::RecordingTimes times;    ///< of samples
  std::optional<stream::TimeBounds> bounds;  ///< of --time, once a time is known

  /// The sum of samples of different events means nothing, so only folded_event is accepted.  If
  /// that is still empty, it becomes `event`.  With --all-events, every event is accepted.  What a
  /// thread did and when it waited are parts of one time: without --event both are accepted.
  bool takes_event(const Options& options, std::string_view event);
  [[nodiscard]] bool would_take(const Options& options, std::string_view event) const;

  /// Is a sample's time, in microseconds (nullopt: it has none), within --time?  If it represents
  /// the time since `begin_us`, a part of that suffices.  With --every, a sample needs a time.  The
  /// first call has the time of the first sample.
  /// Throws Error if --time means no time of this recording.
  bool takes_time(const Options& options, std::optional<std::uint64_t> time_us,
                  std::optional<std::uint64_t> begin_us = std::nullopt);
  /// Is the time within --time?  Throws Error likewise.
  bool holds(const Options& options, std::uint64_t time_us);
};

struct TextReport : SampleChoice {
  std::uint64_t samples = 0;                ///< folded
  std::uint64_t without_stack = 0;          ///< of these, samples that have no frame
  std::string unit;                         ///< of the counts, if it is not samples; may be empty
  std::string facts;                        ///< lines of folded text; may be empty
  bool is_empty_profile = false;            ///< the input has the format, and no sample
  std::uint64_t modules_without_debug = 0;  ///< modules without debug information for --inline
  std::string first_without_debug;          ///< the path of the first of them
  std::uint64_t ignored_lines = 0;          ///< lines that do not belong to the format
  std::string first_ignored;                ///< "FILE:LINE: 'text'"
  std::string left_out;  ///< a message on other data that the output lacks; may be empty
  std::string damage;    ///< a message on damage in the input; may be empty
};

}  // namespace pe::fold
