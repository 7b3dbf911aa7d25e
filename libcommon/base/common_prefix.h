// How far two texts agree.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace pe {

/// How many bytes `a` and `b` begin with alike.
inline std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t i = 0;
  constexpr std::size_t kStep = 64;  // memcmp goes by vector registers
  while (i + kStep <= limit && std::memcmp(a.data() + i, b.data() + i, kStep) == 0)
    i += kStep;
  while (i < limit && a[i] == b[i])
    ++i;
  return i;
}

}  // namespace pe
