// Strict parsing of byte counts: "4096", "512K", "1g".  K, M and G are 1024 and its powers.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/parse_number.h"

namespace pe {

/// Returns nullopt if `text` is not exactly one such number, or exceeds 1024G.
inline std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KkMmGg";
  constexpr unsigned kShiftOfUnit = 10;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  unsigned shift = 0;
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  if (unit != kUnits.npos) {
    shift = kShiftOfUnit * static_cast<unsigned>(unit / 2 + 1);
    text.remove_suffix(1);
  }
  const auto number = parse_number<std::uint64_t>(text);
  if (!number || *number > (kMost >> shift))
    return std::nullopt;
  return *number << shift;
}

}  // namespace pe
