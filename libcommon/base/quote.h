// Input text in a message: short, and harmless to a terminal.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace pe {

/// `text` without what a terminal or a reader could be deceived by: control characters and bytes
/// that are no UTF-8 become \xNN; line separators and characters that change the direction of text
/// \uNNNN.
std::string printable(std::string_view text);

/// `text` between single quotes; every byte that is not printable ASCII becomes
/// \xNN, and what goes past `limit` bytes becomes "...".
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
