// Moments of a recording as people write them, and ranges between two of them: --time.
//
//   184694.229089          seconds of the recording's clock, as perf script prints them
//   +15s  -30s             after the first sample, before the last one
//   14:05  14:05:30.5      the time of day, as `date` prints it here; with Z at the end, UTC
//   2026-11-26T14:05       the same on a day
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "stream/records/record.h"

namespace pe::stream {

/// Converts seconds, "12" or "184694.229089", to whole microseconds, the unit of perf script's
/// times.  Drops finer decimals.  nullopt if the text is not a number, or does not fit.
std::optional<std::uint64_t> parse_seconds_us(std::string_view text);

struct Moment {
  enum class Origin : std::uint8_t {
    kClock,  ///< of the recording
    kStart,  ///< forwards from the first sample
    kEnd,    ///< backwards from the last sample
    kEpoch,  ///< 1970
    kDay,    ///< midnight of the recording's day
  };
  Origin origin = Origin::kClock;
  std::uint64_t us = 0;
  bool is_utc = false;  ///< the day is that of UTC
  std::string text;     ///< as it was written
};

/// Returns nullopt if the text is not one of the forms above, or does not fit.
std::optional<Moment> parse_moment(std::string_view text);

/// The times of a recording.  Moments that count from its start, its end or a day need these.
struct RecordingTimes {
  std::uint64_t first_us = 0, last_us = 0;  ///< of samples, on the recording's clock
  std::optional<ClockData> clock;           ///< nullopt: its times have no date
};

/// A range on the recording's clock, which includes both ends.
struct TimeBounds {
  std::uint64_t from_us = 0;
  std::uint64_t to_us = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool holds(std::uint64_t time_us) const noexcept {
    return from_us <= time_us && time_us <= to_us;
  }
  /// Whether a part of the time from `begin_us` to `end_us` is in the range.
  [[nodiscard]] bool overlaps(std::uint64_t begin_us, std::uint64_t end_us) const noexcept {
    return begin_us < to_us && from_us < end_us;
  }
};

struct TimeRange {
  std::optional<Moment> from, to;  ///< nullopt: without a limit

  /// Is RecordingTimes::last_us needed?
  [[nodiscard]] bool needs_end() const noexcept;
  /// Returns the range in a recording.  A time of day is the nearest one to its first sample.
  /// Throws Error if the recording has no dates, or the range ends before it begins.
  [[nodiscard]] TimeBounds in(const RecordingTimes& times) const;
};

/// Parses "FROM,TO", of which one may be empty, or "FROM".  Throws UsageError.
TimeRange parse_time_range(std::string_view text);

}  // namespace pe::stream
