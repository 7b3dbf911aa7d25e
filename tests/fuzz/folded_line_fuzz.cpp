// A folded line that is printed and read again is the same.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>
#include <string_view>

#include "folded/folded_line.h"

namespace {

void check(std::string_view text, pe::folded::Columns columns) {
  const auto line = pe::folded::parse_folded_line(text, columns);
  if (!line)
    return;
  if (!text.starts_with(line->stack) ||
      (line->stack.empty() && columns != pe::folded::Columns::kPerl &&
       columns != pe::folded::Columns::kPerlOne))
    std::abort();
  std::string printed;
  append_folded_line(printed, *line);
  printed.pop_back();  // the newline
  const auto again = pe::folded::parse_folded_line(printed, columns);
  if (!again || again->stack != line->stack || again->count != line->count ||
      again->before != line->before)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  using pe::folded::Columns;
  for (const auto columns : {Columns::kOne, Columns::kTwo, Columns::kPerl, Columns::kPerlOne})
    check({data, size}, columns);
  return 0;
}
