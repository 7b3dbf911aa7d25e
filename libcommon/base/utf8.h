// Decodes untrusted UTF-8.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe {

inline constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value;    ///< kReplacement if the bytes are not valid
  std::size_t size;  ///< in bytes; 1 if they are not valid
};

/// Returns the first code point of `text`, which must not be empty.  Overlong forms, surrogates and
/// values beyond U+10FFFF are not valid.
CodePoint first_code_point(std::string_view text);

/// Returns whether all of `text` is valid.
bool is_valid_utf8(std::string_view text);

/// Returns the text with U+FFFD in place of each byte that is not valid.
std::string made_valid_utf8(std::string_view text);

}  // namespace pe
