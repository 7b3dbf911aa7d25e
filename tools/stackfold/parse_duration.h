// Parses a duration on the command line: "100ms".
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/parse_number.h"

namespace pe {

/// Returns nanoseconds; nullopt if the text is not a whole number and one of ns, us, ms, s and m,
/// or does not fit.
inline std::optional<std::uint64_t> parse_duration_ns(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t ns;
  };
  constexpr Unit kUnits[] = {
      {"ns", 1}, {"us", kNsPerUs}, {"ms", kNsPerMs}, {"s", kNsPerSecond}, {"m", 60 * kNsPerSecond}};
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_number<std::uint64_t>(text.substr(0, digits));
  const auto* const unit = std::ranges::find(kUnits, text.substr(digits), &Unit::name);
  std::uint64_t ns = 0;
  if (!number || unit == std::end(kUnits) || __builtin_mul_overflow(*number, unit->ns, &ns))
    return std::nullopt;
  return ns;
}

}  // namespace pe
