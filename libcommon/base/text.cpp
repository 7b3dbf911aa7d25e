// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <array>

#include "base/utf8.h"

namespace pe {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

bool is_deceiving(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

namespace {

void append_printable(std::string& out, const CodePoint& c) {
  if (is_deceiving(c.value))
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
  else if (c.is_valid && !is_control(c.value))
    out += c.bytes;
  else
    for (const char byte : c.bytes)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

/// Returns the length of the colour at the start of `text`; 0 if there is none.  Only those that
/// our tools write are colours: another one could hide text ("\033[8m").
std::size_t color_size(std::string_view text) {
  constexpr std::array<std::string_view, 5> kColors = {"\033[0m", "\033[1m", "\033[2m", "\033[31m",
                                                       "\033[33m"};
  for (const std::string_view color : kColors)
    if (text.starts_with(color))
      return color.size();
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty())
    append_printable(out, take_code_point(text));
  return out;
}

std::string printable_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t kept = text.front() == '\n' || text.front() == '\t' ? 1 : color_size(text);
    out += text.substr(0, kept);
    text.remove_prefix(kept);
    if (kept == 0)
      append_printable(out, take_code_point(text));
  }
  return out;
}

}  // namespace pe
