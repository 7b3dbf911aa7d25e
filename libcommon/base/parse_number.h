// Strict number parsing: the whole text, no sign, no blanks, no overflow.
// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

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
