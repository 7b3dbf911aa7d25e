// SPDX-License-Identifier: MIT
#include "malloctrace/preload/sampling.h"

#include <bit>

#include "base/parse_number.h"
#include "recording/inprocess/runtime/settings_text.h"

namespace pe::malloctrace {
namespace {

/// std::lround() is in libm.
std::uint64_t rounded(double positive) noexcept {
  constexpr double kHalf = 0.5;
  return static_cast<std::uint64_t>(positive + kHalf);  // NOLINT(bugprone-incorrect-roundings)
}

}  // namespace

/// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh((m - 1) / (m + 1)), as a series.
double natural_logarithm(double positive) noexcept {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;
  constexpr std::uint64_t kExponentOfOne = 1023;
  constexpr double kRootOfTwo = 1.41421356237309504880;
  const auto bits = std::bit_cast<std::uint64_t>(positive);
  auto exponent = static_cast<double>(bits >> 52) - static_cast<double>(kExponentOfOne);
  auto mantissa = std::bit_cast<double>((bits & kMantissa) | kExponentOfOne << 52);
  if (mantissa > kRootOfTwo) {
    mantissa /= 2;
    exponent += 1;
  }
  const double ratio = (mantissa - 1) / (mantissa + 1);
  const double square = ratio * ratio;
  constexpr int kLastPower = 15;
  double series = 0;
  for (int power = kLastPower; power > 0; power -= 2)
    series = series * square + 1.0 / power;
  return exponent * kLn2 + 2 * ratio * series;
}

/// Halves the argument until it is small, evaluates a series, then applies 1 - (1 - y)^2 as often.
double one_minus_exp_of_minus(double x) noexcept {
  constexpr double kOne = 40;  // exp(-40) is below the precision
  if (x >= kOne)
    return 1;
  constexpr double kSmall = 1.0 / 64;
  int halvings = 0;
  while (x > kSmall) {
    x /= 2;
    ++halvings;
  }
  double y = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))));
  for (; halvings > 0; --halvings)
    y = y * (2 - y);
  return y;
}

Weight sample_weight(std::uint64_t bytes, std::uint64_t mean) noexcept {
  const std::uint64_t size = bytes == 0 ? 1 : bytes;
  const double p = one_minus_exp_of_minus(static_cast<double>(size) / static_cast<double>(mean));
  const double blocks = 1 / p;
  return {rounded(static_cast<double>(bytes) * blocks), rounded(heap::kCountUnit * blocks)};
}

std::uint64_t SampleDistance::next(std::uint64_t mean) noexcept {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  constexpr unsigned kUnusedBits = 11;
  constexpr double kUnit = 0x1p-53;
  const double uniform = (static_cast<double>(state_ >> kUnusedBits) + 1) * kUnit;  // (0, 1]
  const double distance = -natural_logarithm(uniform) * static_cast<double>(mean);
  constexpr double kMost = 0x1p62;
  return 1 + static_cast<std::uint64_t>(distance < kMost ? distance : kMost);
}

namespace {

void set_switch(std::string_view value, bool& to) noexcept {
  if (value == "0" || value == "1")
    to = value == "1";
}

template <typename T>
void set_number(std::string_view value, T& to) noexcept {
  to = parse_number<T>(value).value_or(to);
}

}  // namespace

Settings parse_settings(std::string_view text) noexcept {
  Settings settings;
  inprocess::for_each_field(text, [&settings](std::string_view name, std::string_view value) {
    if (name == "socket")
      settings.socket.set(value);
    else if (name == "key")
      settings.key.set(value);
    else if (name == "sample")
      set_number(value, settings.sample_bytes);
    else if (name == "depth")
      set_number(value, settings.depth);
    else if (name == "mmap")
      set_switch(value, settings.traces_mmap);
    else if (name == "follow")
      set_switch(value, settings.follows_forks);
  });
  return settings;
}

}  // namespace pe::malloctrace
