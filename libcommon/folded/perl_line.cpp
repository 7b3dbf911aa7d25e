// SPDX-License-Identifier: MIT
#include "folded/perl_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/characters.h"
#include "base/parse_number.h"

namespace pe::folded {

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

namespace {

/// Matches \s of a perl regular expression, within a line.
constexpr bool is_perl_blank(char c) { return is_blank(c) || (c >= '\v' && c <= '\r'); }

/// Cuts the number at the end of `line`, and the blank before it, off.
std::optional<Count> cut_perl_count(std::string_view& line) {
  std::size_t digits = line.size();
  while (digits > 0 && !is_perl_blank(line[digits - 1]))
    --digits;
  if (digits == 0)
    return std::nullopt;
  const std::string_view text = line.substr(digits);
  const std::size_t point = text.find('.');
  const auto are_digits = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(), is_digit);
  };
  if (point == 0 || text.empty() || !are_digits(text.substr(0, point)) ||
      (point != kNone && !are_digits(text.substr(point + 1))))
    return std::nullopt;
  line = line.substr(0, digits - 1);
  return parse_count(text).value_or(Count::max());
}

}  // namespace

std::optional<FoldedLine> parse_perl_line(std::string_view line, bool may_have_two) {
  const auto count = cut_perl_count(line);
  if (!count)
    return std::nullopt;
  FoldedLine folded{.stack = {}, .count = *count, .before = {}};
  if (may_have_two)
    folded.before = cut_perl_count(line);
  folded.stack = line;
  return folded;
}

PerlLineParts perl_parts(std::string_view line, const FoldedLine& folded) {
  PerlLineParts parts{.count = line.substr(folded.stack.size() + 1), .before = {}};
  if (folded.before) {
    const auto* const blank = std::find_if(parts.count.begin(), parts.count.end(), is_perl_blank);
    parts.before = parts.count.substr(0, static_cast<std::size_t>(blank - parts.count.begin()));
    parts.count.remove_prefix(parts.before.size() + 1);
  }
  return parts;
}

PerlCounts perl_counts(std::string_view line, const FoldedLine& folded) {
  const PerlLineParts parts = perl_parts(line, folded);
  PerlCounts counts{.count = PerlNumber::parse(parts.count), .before = {}};
  if (folded.before)
    counts.before = PerlNumber::parse(parts.before);
  return counts;
}

}  // namespace pe::folded
