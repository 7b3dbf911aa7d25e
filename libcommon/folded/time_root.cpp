// SPDX-License-Identifier: MIT
#include "folded/time_root.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"

namespace pe::folded {
namespace {

/// nullopt unless all of `digits` are digits, and there are `least` to `most` of them.
std::optional<std::uint64_t> parse_digits(std::string_view digits, std::size_t least,
                                          std::size_t most) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digits.size() < least || digits.size() > most || !std::ranges::all_of(digits, is_digit))
    return std::nullopt;
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::optional<std::uint64_t> parse_time_root(std::string_view frame) {
  if (!frame.starts_with('@'))
    return std::nullopt;
  frame.remove_prefix(1);
  const std::size_t point = std::min(frame.find('.'), frame.size());
  constexpr std::size_t kMostDigits = 10;  // 300 years, which fit 64 bits of nanoseconds
  const auto seconds = parse_digits(frame.substr(0, point), 1, kMostDigits);
  if (!seconds)
    return std::nullopt;
  std::uint64_t ns = *seconds * kNsPerSecond;
  if (point == frame.size())
    return ns;
  const std::string_view decimals = frame.substr(point + 1);
  constexpr std::size_t kMostDecimals = 9;
  auto fraction = parse_digits(decimals, 3, kMostDecimals);
  if (!fraction || decimals.size() % 3 != 0)
    return std::nullopt;
  for (std::size_t i = decimals.size(); i < kMostDecimals; ++i)
    *fraction *= 10;
  return ns + *fraction;
}

std::string time_root(std::uint64_t ns, std::uint64_t last_ns, std::uint64_t step_ns) {
  const std::size_t digits = std::to_string(last_ns / kNsPerSecond).size();
  std::string text = fmt::format("@{:0{}}", ns / kNsPerSecond, digits);
  if (step_ns % kNsPerSecond == 0)
    return text;
  const std::string decimals = fmt::format("{:09}", ns % kNsPerSecond);
  const std::size_t shown = step_ns % kNsPerMs == 0 ? 3 : step_ns % kNsPerUs == 0 ? 6 : 9;
  return text + "." + decimals.substr(0, shown);
}

}  // namespace pe::folded
