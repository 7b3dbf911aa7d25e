// SPDX-License-Identifier: MIT
#include "base/quote.h"

#include "base/utf8.h"

namespace pe {
namespace {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

/// U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 change the direction of text
/// (Unicode Standard Annex 9, table of explicit formatting characters).  U+2028 and U+2029 end
/// lines.
bool is_deceiving(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const bool is_valid = c.value != kReplacement || c.size > 1;
    if (is_valid && is_deceiving(c.value))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    else if (is_valid && !is_control(c.value))
      out += text.substr(0, c.size);
    else
      for (const char byte : text.substr(0, c.size))
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(c.size);
  }
  return out;
}

}  // namespace pe
