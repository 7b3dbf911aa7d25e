// Classifies bytes as characters: only ASCII, in every locale.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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

// Splits a line, field by field.

/// Removes the first `separator` and the bytes before it from `text`, and returns these bytes.
/// Returns nullopt and leaves `text` unchanged if there is no `separator`.
inline std::optional<std::string_view> take_until(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  if (end == std::string_view::npos)
    return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + 1);
  return taken;
}

// Finds the common start of two texts.

/// Returns how many bytes at the start of `a` and `b` are equal.
inline std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t i = 0;
  constexpr std::size_t kStep = 64;  // memcmp compares in vector registers
  while (i + kStep <= limit && std::memcmp(a.data() + i, b.data() + i, kStep) == 0)
    i += kStep;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for (; i + kWord <= limit; i += kWord) {
    std::uint64_t words[2];
    std::memcpy(&words[0], a.data() + i, kWord);
    std::memcpy(&words[1], b.data() + i, kWord);
    if (words[0] != words[1])
      break;  // the last word is left to the loop below
  }
  while (i < limit && a[i] == b[i])
    ++i;
  return i;
}

}  // namespace pe
