// Reads --time FROM,TO in seconds of the recording's clock, as perf script prints them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace pe::fold {

/// Converts seconds, "12" or "184694.229089", to whole microseconds, the unit of perf script's
/// times.  Drops finer decimals.  nullopt if the text is not a number, or does not fit.
std::optional<std::uint64_t> parse_seconds_us(std::string_view text);

/// The range includes both ends.
struct TimeRange {
  std::uint64_t from_us = 0;
  std::uint64_t to_us = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool holds(std::uint64_t time_us) const noexcept {
    return from_us <= time_us && time_us <= to_us;
  }
};

/// Parses "FROM,TO"; one of them may be empty.  Throws UsageError.
TimeRange parse_time_range(std::string_view text);

}  // namespace pe::fold
