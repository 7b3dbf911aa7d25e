// SPDX-License-Identifier: MIT
#include "stackfold/formats/text_lines.h"

#include <fmt/format.h>

#include "base/quote.h"

namespace pe::fold {

std::optional<std::string_view> TextLines::next() {
  auto line = lines_.next();
  if (line && line->ends_with('\r'))
    line->remove_suffix(1);
  return line;
}

void TextLines::ignore(std::string_view first, std::uint64_t number, std::uint64_t count) {
  if (report_.ignored_lines == 0 && count > 0)
    report_.first_ignored = fmt::format("{}:{}: {}", input_.name(), number, in_quotes(first));
  report_.ignored_lines += count;
}

}  // namespace pe::fold
