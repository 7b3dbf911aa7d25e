// Strict number parsing: the whole text, no sign, no blanks, no overflow.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace pe {

/// Parses like std::from_chars, but strictly.  Returns nullopt if `text` is not exactly one
/// unsigned number in `base` (no "0x") that fits in T.
template <std::unsigned_integral T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || stop != end)
    return std::nullopt;
  return value;
}

// Strict parsing of byte counts: "4096", "512K", "1g".  K, M and G are 1024 and its powers.

/// Returns nullopt if `text` is not exactly one such number, or exceeds 1024G.
inline std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KkMmGg";
  constexpr unsigned kShiftOfUnit = 10;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  unsigned shift = 0;
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  if (unit != kUnits.npos) {
    shift = kShiftOfUnit * static_cast<unsigned>(unit / 2 + 1);
    text.remove_suffix(1);
  }
  const auto number = parse_number<std::uint64_t>(text);
  if (!number || *number > (kMost >> shift))
    return std::nullopt;
  return *number << shift;
}

// Durations on the command line: "100ms".

/// Returns nanoseconds; nullopt if the text is not a whole number and one of ns, us, ms, s, m and
/// h, or does not fit.
inline std::optional<std::uint64_t> parse_duration_ns(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t ns;
  };
  constexpr Unit kUnits[] = {
      {"ns", 1},           {"us", kNsPerUs},         {"ms", kNsPerMs},
      {"s", kNsPerSecond}, {"m", 60 * kNsPerSecond}, {"h", 3600 * kNsPerSecond}};
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_number<std::uint64_t>(text.substr(0, digits));
  const auto* const unit = std::ranges::find(kUnits, text.substr(digits), &Unit::name);
  std::uint64_t ns = 0;
  if (!number || unit == std::end(kUnits) || __builtin_mul_overflow(*number, unit->ns, &ns))
    return std::nullopt;
  return ns;
}

// Strict parsing of decimal fractions: "12", "0.5", ".5", "12."; no sign, no exponent.

/// Returns nullopt if `text` is not exactly one unsigned decimal number that a double can hold.
inline std::optional<double> parse_decimal(std::string_view text) {
  // from_chars would also accept "-1", "inf" and "nan".
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos ||
      text == ".")
    return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc{} || stop != end)
    return std::nullopt;
  return value;
}

}  // namespace pe
