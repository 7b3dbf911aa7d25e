// SPDX-License-Identifier: MIT
#include "painting/numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/parse_number.h"

namespace pe::painting {
namespace {

std::string in_groups(std::string digits) {
  for (std::size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace

std::string grouped_digits(double number) { return in_groups(fmt::format("{:.0f}", number)); }

std::string grouped_count(folded::Count count, double factor) {
  constexpr double kSmall = 10;
  const double value = count.as_double() * factor;
  if (value <= 0 || value >= kSmall || value == std::floor(value))
    return count.billionths == 0 && factor == 1 ? in_groups(fmt::format("{}", count.whole))
                                                : grouped_digits(value);
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(value)));
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.'))
    digits.pop_back();
  return digits;
}

PerlNumber::PerlNumber(double value) : is_integer_(false), value_(value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value >= 0 && value < kExact && value == std::floor(value)) {
    is_integer_ = true;
    whole_ = static_cast<std::uint64_t>(value);
  }
}

PerlNumber PerlNumber::parse(std::string_view text) {
  if (const auto whole = parse_number<std::uint64_t>(text))
    return PerlNumber(*whole);
  // The text may continue after the number, and has no end; numbers are short.
  return PerlNumber(std::strtod(std::string(text).c_str(), nullptr));
}

std::string PerlNumber::text() const {
  return is_integer_ ? fmt::format("{}", whole_) : fmt::format("{:.15g}", value_);
}

PerlNumber PerlNumber::printed() const {
  return is_integer_ ? *this : PerlNumber(std::strtod(text().c_str(), nullptr));
}

PerlNumber& PerlNumber::operator+=(const PerlNumber& other) {
  std::uint64_t sum = 0;
  if (is_integer_ && other.is_integer_ && !__builtin_add_overflow(whole_, other.whole_, &sum))
    return *this = PerlNumber(sum);
  return *this = PerlNumber(value_ + other.value_);
}

double PerlNumber::minus(const PerlNumber& other) const noexcept {
  if (!is_integer_ || !other.is_integer_)
    return value_ - other.value_;
  const bool is_less = whole_ < other.whole_;
  const auto distance =
      static_cast<double>(is_less ? other.whole_ - whole_ : whole_ - other.whole_);
  return is_less ? -distance : distance;
}

PerlCounts perl_counts(std::string_view line, const folded::FoldedLine& folded) {
  const folded::PerlLineParts parts = folded::perl_parts(line, folded);
  PerlCounts counts{.count = PerlNumber::parse(parts.count), .before = {}};
  if (folded.before)
    counts.before = PerlNumber::parse(parts.before);
  return counts;
}

}  // namespace pe::painting
