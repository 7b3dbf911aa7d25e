// SPDX-License-Identifier: MIT
#include "folded/perl_line.h"

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
  const auto count = parse_count(line.substr(digits));
  if (count)
    line = line.substr(0, digits - 1);
  return count;
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

}  // namespace pe::folded
