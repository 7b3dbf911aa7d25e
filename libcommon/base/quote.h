// Makes input text in a message short, and harmless to a terminal.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace pe {

/// Returns `text` without characters that could deceive a terminal or a reader.  Control characters
/// and bytes that are not UTF-8 become \xNN.  Line separators and characters that change the
/// direction of text become \uNNNN.
std::string printable(std::string_view text);

/// Returns `text` between single quotes.  Every byte that is not printable ASCII becomes \xNN.  All
/// bytes beyond `limit` become one "...".
inline std::string quoted(std::string_view text, std::size_t limit = 60) {
  std::string out = "'";
  for (const char c : text.substr(0, limit)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  if (text.size() > limit)
    out += "...";
  return out += '\'';
}

}  // namespace pe
