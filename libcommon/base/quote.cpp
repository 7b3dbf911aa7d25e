// SPDX-License-Identifier: MIT
#include "base/quote.h"

#include "base/utf8.h"

namespace pe {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

bool is_deceiving(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = take_code_point(text);
    if (is_deceiving(c.value))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    else if (c.is_valid && !is_control(c.value))
      out += c.bytes;
    else
      for (const char byte : c.bytes)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return out;
}

}  // namespace pe
