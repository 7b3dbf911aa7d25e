// "1 sample", "2 samples": the counts in every closing line.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace pe {

/// `count` and the noun, with an "s" ("es" behind another) unless there is exactly one.
inline std::string plural(std::uint64_t count, std::string_view noun) {
  const std::string_view ending = noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : ending);
}

}  // namespace pe
