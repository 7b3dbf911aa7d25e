// Facts in folded text, which say who made it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "folded/facts.h"

namespace pe::testing {

/// Returns the lines of folded text that are no facts.
inline std::string without_facts(std::string_view text) {
  std::string stacks;
  while (!text.empty()) {
    const std::size_t end = text.find('\n') + 1;
    if (!folded::parse_fact(text.substr(0, end - 1)))
      stacks += text.substr(0, end);
    text.remove_prefix(end);
  }
  return stacks;
}

}  // namespace pe::testing
