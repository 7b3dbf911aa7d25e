// --time FROM,TO: in seconds of the recording's clock, as perf script prints them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace pe::fold {

/// "12", "184694.229089" in whole microseconds, as perf script prints times; finer decimals are
/// dropped.  nullopt if it is none, or does not fit.
std::optional<std::uint64_t> parse_seconds_us(std::string_view text);

/// Both ends belong to it.
struct TimeRange {
  std::uint64_t from_us = 0;
  std::uint64_t to_us = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool holds(std::uint64_t time_us) const noexcept {
    return from_us <= time_us && time_us <= to_us;
  }
};

/// "FROM,TO"; one of them may be empty.  Throws UsageError.
TimeRange parse_time_range(std::string_view text);

}  // namespace pe::fold
