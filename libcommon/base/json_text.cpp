// SPDX-License-Identifier: MIT
#include "base/json_text.h"

#include <fmt/format.h>

#include <iterator>

#include "base/utf8.h"

namespace pe {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [value, size] = first_code_point(text);
    const std::string_view bytes = text.substr(0, size);
    if (value == '"' || value == '\\') {
      out += '\\';
      out += bytes;
    } else if (value < 0x20 || value == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(value));
    } else if (value == kReplacement) {
      out += "\\ufffd";
    } else {
      out += bytes;
    }
    text.remove_prefix(size);
  }
  return out + '"';
}

}  // namespace pe
