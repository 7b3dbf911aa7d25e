// Writes a duration for people: "12.3 ms".
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace pe {

/// Returns the duration with three digits, in the unit in which it is 1 or more.
inline std::string duration_text(std::uint64_t ns) {
  const auto in = [ns](std::uint64_t unit, const char* name) {
    return fmt::format("{:.3g} {}", static_cast<double>(ns) / static_cast<double>(unit), name);
  };
  if (ns >= 1'000 * kNsPerSecond)  // no exponent
    return fmt::format("{} s", ns / kNsPerSecond);
  if (ns >= kNsPerSecond)
    return in(kNsPerSecond, "s");
  if (ns >= kNsPerMs)
    return in(kNsPerMs, "ms");
  return ns >= kNsPerUs ? in(kNsPerUs, "us") : in(1, "ns");
}

}  // namespace pe
