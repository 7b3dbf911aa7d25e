// SPDX-License-Identifier: MIT
#include "stackfold/time_range.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "folded/count.h"

namespace pe::fold {

std::optional<std::uint64_t> parse_seconds_us(std::string_view text) {
  constexpr std::uint32_t kBillionthsPerUs = 1000;
  const auto seconds = folded::parse_count(text);
  std::uint64_t us = 0;
  if (!seconds || __builtin_mul_overflow(seconds->whole, kUsPerSecond, &us) ||
      __builtin_add_overflow(us, std::uint64_t{seconds->billionths / kBillionthsPerUs}, &us))
    return std::nullopt;
  return us;
}

TimeRange parse_time_range(std::string_view text) {
  const auto refuse = [text](const char* problem) {
    throw UsageError(fmt::format("--time: {}: '{}'", problem, text));
  };
  const auto comma = text.find(',');
  if (comma == std::string_view::npos || text.size() == 1)
    refuse("not FROM,TO in seconds");
  TimeRange range;
  const auto read = [&](std::string_view part, std::uint64_t& us) {
    if (part.empty())
      return;
    const auto parsed = parse_seconds_us(part);
    if (!parsed)
      refuse("not FROM,TO in seconds");
    us = *parsed;
  };
  read(text.substr(0, comma), range.from_us);
  read(text.substr(comma + 1), range.to_us);
  if (range.from_us > range.to_us)
    refuse("ends before it begins");
  return range;
}

}  // namespace pe::fold
