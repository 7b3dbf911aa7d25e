// SPDX-License-Identifier: MIT
#include "folded/perl_line.h"

#include <algorithm>

#include "base/characters.h"

namespace pe::folded {

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

}  // namespace pe::folded
