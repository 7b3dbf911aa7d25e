// Decodes untrusted UTF-8.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe {

inline constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value;          ///< kReplacement if it is not valid
  std::string_view bytes;  ///< one byte if it is not valid
  bool is_valid;
};

/// As take_code_point(), of text that does not begin with ASCII.
CodePoint take_beyond_ascii(std::string_view& text);

/// Removes the first code point from `text`, which must not be empty, and returns it.  Overlong
/// forms, surrogates and values beyond U+10FFFF are not valid.
inline CodePoint take_code_point(std::string_view& text) {
  const unsigned char first = static_cast<unsigned char>(text.front());
  if (first >= 0x80)
    return take_beyond_ascii(text);
  const CodePoint taken{.value = first, .bytes = text.substr(0, 1), .is_valid = true};
  text.remove_prefix(1);
  return taken;
}

/// Returns whether all of `text` is valid.
bool is_valid_utf8(std::string_view text);

/// Adds a code point; U+FFFD in place of a surrogate or a value beyond U+10FFFF.
void append_utf8(std::string& text, char32_t value);

/// Returns the text with U+FFFD in place of each byte that is not valid.
std::string made_valid_utf8(std::string_view text);

}  // namespace pe
