// Makes input text in a message short, and harmless to a terminal.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace pe {

bool is_control(char32_t c);

/// Returns whether `c` changes the direction of text or ends a line.  Such a character can make a
/// name look like another.  U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 are in
/// the Unicode Standard Annex 9, table of explicit formatting characters.  U+2028 and U+2029 end
/// lines.
bool is_deceiving(char32_t c);

/// Returns `text` without characters that could deceive a terminal or a reader.  Control characters
/// and bytes that are not UTF-8 become \xNN.  Line separators and characters that change the
/// direction of text become \uNNNN.
std::string printable(std::string_view text);

/// Does the same to whole lines of a tool's result: line ends, tabs and the colours that our tools
/// write stay.
std::string printable_text(std::string_view text);

/// Returns `text` between single quotes.  Every byte that is not printable ASCII becomes \xNN.  All
/// bytes beyond `limit` become one "...".
inline std::string in_quotes(std::string_view text, std::size_t limit = 60) {
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
