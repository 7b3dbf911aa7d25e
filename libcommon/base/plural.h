// Formats the counts in every closing line: "1 sample", "2 samples".
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace pe {

/// Returns `count` and the noun, with an "s" ("es" after an "s") unless `count` is 1.
inline std::string plural(std::uint64_t count, std::string_view noun) {
  const std::string_view ending = noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : ending);
}

}  // namespace pe
