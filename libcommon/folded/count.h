// The number at the end of a folded line: exact for every 64-bit integer, and
// exact to nine decimals for the fractions that scaled profiles carry.
//
// A double would lose integers above 2^53 and make sums depend on their order.
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace pe::folded {

/// A count in the unit that the producer chose: samples, bytes, microseconds.
struct Count {
  static constexpr std::uint32_t kOne = 1'000'000'000;  ///< billionths in 1

  std::uint64_t whole = 0;
  std::uint32_t billionths = 0;  ///< below kOne

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the 0 behind <=>
  auto operator<=>(const Count&) const = default;

  [[nodiscard]] bool is_zero() const noexcept { return whole == 0 && billionths == 0; }
  [[nodiscard]] double as_double() const noexcept {
    return static_cast<double>(whole) + static_cast<double>(billionths) / kOne;
  }
  static constexpr Count max() noexcept {
    return {std::numeric_limits<std::uint64_t>::max(), kOne - 1};
  }

  /// Returns the difference *this - `other`; negative if `other` is larger.
  [[nodiscard]] double minus(Count other) const noexcept {
    const bool is_less = *this < other;
    const Count& high = is_less ? other : *this;
    const Count& low = is_less ? *this : other;
    const double distance =
        static_cast<double>(high.whole - low.whole) +
        (static_cast<double>(high.billionths) - static_cast<double>(low.billionths)) / kOne;
    return is_less ? -distance : distance;
  }

  /// Adds `other`.  If the sum does not fit, returns false and sets *this to max().
  [[nodiscard]] bool add(Count other) noexcept {
    const std::uint32_t fraction = billionths + other.billionths;
    const bool carry = fraction >= kOne;
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(whole, other.whole, &sum) ||
        __builtin_add_overflow(sum, static_cast<std::uint64_t>(carry), &sum)) {
      *this = max();
      return false;
    }
    whole = sum;
    billionths = carry ? fraction - kOne : fraction;
    return true;
  }
};

/// Parses "12", "12." or "12.5"; drops decimals after the ninth.  nullopt for
/// anything else, and for numbers that do not fit 64 bits.
std::optional<Count> parse_count(std::string_view text);

/// `count` multiplied by `factor`; nullopt if that does not fit.
std::optional<Count> times(Count count, std::uint64_t factor);

/// Appends the shortest text that parse_count() turns back into `count`.
void append_count(std::string& out, Count count);
inline std::string to_text(Count count) {
  std::string text;
  append_count(text, count);
  return text;
}

}  // namespace pe::folded
