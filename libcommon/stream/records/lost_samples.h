// Adds up the samples that a recording has lost.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "stream/records/record.h"

namespace pe::stream {

class LostSamples {
 public:
  /// Adds a LOST or LOST_SAMPLES record; false if it is malformed.  `time_ns` is the time of the
  /// record, 0 if it has none.
  ///
  /// The kernel reports each loss with the next record that finds room (perf_event_open(2),
  /// PERF_RECORD_LOST).  It also counts the loss for its counter (PERF_FORMAT_LOST).  At its end
  /// the recorder writes these counts as LOST_SAMPLES without a time.  So a loss may be reported
  /// twice; a loss that no record followed is reported only once.
  bool add(const Record& record, std::uint64_t time_ns);
  /// Adds the total loss that a counter reports.
  void add_counted(std::uint64_t lost) noexcept { counted_ += lost; }

  [[nodiscard]] std::uint64_t count() const noexcept { return std::max(told_, counted_); }
  /// Returns the losses in records with a time; count() may have more.
  [[nodiscard]] std::uint64_t told() const noexcept { return told_; }

 private:
  std::uint64_t told_ = 0, counted_ = 0;
};

}  // namespace pe::stream
