// Formats shares of which 100 % must mean all: "99.9 %".
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace pe {

/// Returns the share in percent, with one decimal, rounded down.  `of` must not be 0.
inline std::string share_rounded_down(double part, double of) {
  constexpr double kPerMille = 1000;
  return fmt::format("{:.1f} %", std::floor(kPerMille * part / of) / 10);
}

}  // namespace pe
