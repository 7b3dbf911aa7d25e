// Finds the common start of two texts.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
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
  while (i < limit && a[i] == b[i])
    ++i;
  return i;
}

}  // namespace pe
