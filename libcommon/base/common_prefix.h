// Finds the common start of two texts.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pe {

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
