// SPDX-License-Identifier: MIT
#include "stacktop/frame_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/quote.h"
#include "base/utf8.h"

namespace pe::stacktop {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Returns the index of the byte at which column `column` starts.
std::size_t byte_of_column(std::string_view text, std::size_t column) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (!is_continuation(text[at]) && column-- == 0)
      break;
  return at;
}

}  // namespace

std::string shown(std::string_view name) {
  if (name.empty())
    return "[no name]";
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const CodePoint c = take_code_point(name);
    if (c.is_valid && !is_control(c.value) && !is_deceiving(c.value))
      out += c.bytes;
    else
      for (const char byte : c.bytes)
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string shortened(std::string_view text, std::size_t columns) {
  constexpr std::string_view kCut = "...";
  const std::size_t size = columns_of(text);
  if (size <= columns)
    return std::string(text);
  if (columns <= kCut.size())
    return std::string(kCut.substr(0, columns));
  const std::size_t kept = columns - kCut.size();
  const std::size_t front = (kept + 1) / 2;
  std::string out(text.substr(0, byte_of_column(text, front)));
  out += kCut;
  out += text.substr(byte_of_column(text, size - (kept - front)));
  return out;
}

}  // namespace pe::stacktop
