// A folded line, printed again, must read the same.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>
#include <string_view>

#include "folded/folded_line.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  const auto line = pe::folded::parse_folded_line(text);
  if (!line)
    return 0;
  if (line->stack.empty() || !text.starts_with(line->stack))
    std::abort();
  std::string printed;
  append_folded_line(printed, *line);
  printed.pop_back();  // the newline
  const auto again = pe::folded::parse_folded_line(printed);
  if (!again || again->stack != line->stack || again->count != line->count)
    std::abort();
  return 0;
}
