// Taking UTF-8 apart, without trusting it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe {

inline constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value;    ///< kReplacement if the bytes are not valid
  std::size_t size;  ///< bytes taken, 1 if they are not valid
};

/// The code point that `text` begins with; `text` must not be empty.  Overlong
/// forms, surrogates and what lies beyond U+10FFFF are not valid.
CodePoint first_code_point(std::string_view text);

/// Whether all of it is valid.
bool is_valid_utf8(std::string_view text);

/// The text, with U+FFFD for each byte that is not valid.
std::string made_valid_utf8(std::string_view text);

}  // namespace pe
