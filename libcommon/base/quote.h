// Input text in a message: short, and harmless to a terminal.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace pe {

/// `text` with every control character as \xNN: what a user typed, or a file is called, must not
/// reach a terminal as it is.
inline std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

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
