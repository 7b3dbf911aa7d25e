// SPDX-License-Identifier: MIT
#include "folded/folded_line.h"

#include <algorithm>

#include "base/characters.h"
#include "folded/facts.h"
#include "folded/perl_line.h"

namespace pe::folded {
namespace {

/// Cuts the number at the end of `line`, and the blanks around it, off.
std::optional<Count> cut_count(std::string_view& line) {
  // The loops scan from the end because a stack has hundreds of bytes and the count a few;
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
  if (count)
    line = line.substr(0, stack);
  return count;
}

/// Does the line end in a count, which is not the result of a system call ("close(3) = 0")?
bool looks_like_stack(std::string_view line) {
  const auto folded = parse_folded_line(line);
  return folded && !folded->stack.ends_with(" =");
}

template <typename IsStack>
LineCounts count_lines(std::string_view text, IsStack&& is_stack) {
  LineCounts lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    const bool is_other = !is_stack(line);
    if (is_other && parse_fact(line))
      continue;
    ++lines.all;
    if (is_other && lines.others++ == 0)
      lines.first_other = line;
    lines.before_other += lines.others == 0 ? 1 : 0;
  }
  return lines;
}

}  // namespace

std::optional<FoldedLine> parse_folded_line(std::string_view line, Columns columns) {
  if (columns == Columns::kPerl || columns == Columns::kPerlOne)
    return parse_perl_line(line, columns == Columns::kPerl);
  const auto count = cut_count(line);
  if (!count)
    return std::nullopt;
  FoldedLine folded{.stack = {}, .count = *count, .before = {}};
  if (columns == Columns::kTwo) {
    folded.before = cut_count(line);
    if (!folded.before)
      return std::nullopt;
  }
  folded.stack = line;
  return folded;
}

bool has_two_columns(std::string_view text) {
  bool is_any = false;
  while (const auto line = take_until(text, '\n')) {
    if (parse_folded_line(*line, Columns::kTwo))
      is_any = true;
    else if (parse_folded_line(*line, Columns::kOne))
      return false;
  }
  return is_any;
}

bool looks_folded(std::string_view text) {
  constexpr std::size_t kFirst = 10;       // each of the first lines must be a stack
  constexpr std::size_t kMostOthers = 10;  // then at most one line in 10 may be something else
  const auto is_stack = [](std::string_view line) {
    return !is_blank(line[0]) && looks_like_stack(line);
  };
  const LineCounts lines = count_lines(text, is_stack);
  return lines.before_other >= std::min(kFirst, lines.all) &&
         lines.others <= lines.all / kMostOthers;
}

LineCounts count_lines(std::string_view text) {
  return count_lines(text,
                     [](std::string_view line) { return parse_folded_line(line).has_value(); });
}

void append_folded_line(std::string& out, const FoldedLine& line) {
  out += line.stack;
  out += ' ';
  if (line.before) {
    append_count(out, *line.before);
    out += ' ';
  }
  append_count(out, line.count);
  out += '\n';
}

}  // namespace pe::folded
