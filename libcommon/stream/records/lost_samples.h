// Adding up the samples that a recording has lost.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "stream/records/record.h"

namespace pe::stream {

class LostSamples {
 public:
  /// Takes a LOST or LOST_SAMPLES record; false if it is malformed.  `time_ns`: when it was
  /// written, 0 if the record does not say.
  ///
  /// The kernel tells each loss with the next record that finds room (perf_event_open(2),
  /// PERF_RECORD_LOST), and counts it for its counter as well (PERF_FORMAT_LOST).  What has been
  /// counted is written by the recorder, at its end, as LOST_SAMPLES without a time.  So each loss
  /// may be told twice, and those that no record followed only once.
  bool add(const Record& record, std::uint64_t time_ns);
  /// Takes what a counter says that it has lost in all.
  void add_counted(std::uint64_t lost) noexcept { counted_ += lost; }

  [[nodiscard]] std::uint64_t count() const noexcept { return std::max(told_, counted_); }

 private:
  std::uint64_t told_ = 0, counted_ = 0;
};

}  // namespace pe::stream
