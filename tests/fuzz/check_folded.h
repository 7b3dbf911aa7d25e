// A property of everything that stackfold prints: it can be read back as folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "folded/folded_line.h"

namespace pe::testing {

/// Checks that `text` has `lines` lines, each with a stack that has no empty frame.
inline void check_folded(std::string_view text, std::size_t lines) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos || lines-- == 0)
      std::abort();
    const std::string_view line = text.substr(0, end);
    const auto folded = pe::folded::parse_folded_line(line);
    if (!folded || folded->stack.front() == ';' || folded->stack.back() == ';' ||
        folded->stack.find(";;") != std::string_view::npos)
      std::abort();
    text.remove_prefix(end + 1);
  }
  if (lines != 0)
    std::abort();
}

}  // namespace pe::testing
