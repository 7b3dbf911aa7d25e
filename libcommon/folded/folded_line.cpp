// SPDX-License-Identifier: MIT
#include "folded/folded_line.h"

namespace pe::folded {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

std::optional<FoldedLine> parse_folded_line(std::string_view line) {
  // By hand from the end: a stack has hundreds of bytes, the count a few, and
  // find_last_of() is several times slower.
  std::size_t end = line.size();
  while (end > 0 && (is_blank(line[end - 1]) || line[end - 1] == '\r'))
    --end;
  std::size_t digits = end;
  while (digits > 0 && !is_blank(line[digits - 1])) {
    const char c = line[digits - 1];
    if ((c < '0' || c > '9') && c != '.')
      return std::nullopt;
    --digits;
  }
  std::size_t stack = digits;
  while (stack > 0 && is_blank(line[stack - 1]))
    --stack;
  if (stack == 0)
    return std::nullopt;
  const auto count = parse_count(line.substr(digits, end - digits));
  if (!count)
    return std::nullopt;
  return FoldedLine{.stack = line.substr(0, stack), .count = *count};
}

void append_folded_line(std::string& out, const FoldedLine& line) {
  out += line.stack;
  out += ' ';
  append_count(out, line.count);
  out += '\n';
}

}  // namespace pe::folded
