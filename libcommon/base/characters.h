// Classifies bytes as characters: only ASCII, in every locale.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace pe {

/// The result of std::string_view's searches when they find nothing.
inline constexpr std::size_t kNone = std::string_view::npos;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
/// A hexadecimal digit as the kernel and most tools print them: in lower case.
constexpr bool is_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f'); }
/// True for blanks within a line.
constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
/// \s of a regular expression.
constexpr bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

namespace detail {
// This is a table because four comparisons for each digit of a pc took a tenth of the time of
// reading perf script text.
inline constexpr auto kWordCharacters = [] {
  std::array<bool, 256> is{};
  for (std::size_t c = 0; c < is.size(); ++c) {
    const auto character = static_cast<char>(c);
    is[c] = is_digit(character) || is_lower(character) || is_upper(character) || c == '_';
  }
  return is;
}();
}  // namespace detail

/// \w of a regular expression.
constexpr bool is_word(char c) noexcept {
  return detail::kWordCharacters[static_cast<unsigned char>(c)];
}

}  // namespace pe
