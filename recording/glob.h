// Patterns for names: * is any text, ? is any letter.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

namespace pe {

inline bool is_pattern(std::string_view text) noexcept {
  return text.find_first_of("*?") != text.npos;
}

/// Returns whether the whole `text` matches.  Takes at most the product of both lengths.
inline bool matches_pattern(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0;
  std::size_t star = pattern.npos, retry = 0;  // the last '*', and the text that it may still eat
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

}  // namespace pe
