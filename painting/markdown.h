// Names in tables of Markdown (GitHub Flavored Markdown, 4.10 and 6.1).
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace pe::painting {

/// Returns the text as code in a cell.  `text` must be safe to print.
inline std::string markdown_code(std::string_view text) {
  // The fence has more backticks than any run of them in the text.
  std::size_t longest = 0;
  std::size_t run = 0;
  std::string cell;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    cell += c == '|' ? "\\|" : std::string_view(&c, 1);
  }
  const std::string fence(longest + 1, '`');
  const std::string_view blank = longest > 0 ? " " : "";
  return std::string(fence).append(blank).append(cell).append(blank).append(fence);
}

}  // namespace pe::painting
