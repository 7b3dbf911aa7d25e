// Keeps the samples of a range of time (--time).
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/io/input.h"
#include "stream/session.h"
#include "stream/time_range.h"

namespace pe::symbolize {

class TimeChoice {
 public:
  /// Chooses the segments of the input that the range needs, or looks for its end if the range
  /// counts from there.  Throws Error if nothing was kept from that range.
  TimeChoice(const std::optional<stream::TimeRange>& range, Input& input);

  /// Follows a record.  Returns false for a sample outside the range.  Throws Error if the samples
  /// have no times.
  bool holds(const stream::Session& session, const stream::Record& record);

 private:
  std::optional<stream::TimeRange> range_;
  stream::RecordingTimes times_;
  std::optional<stream::TimeBounds> bounds_;  ///< once they are known
};

}  // namespace pe::symbolize
