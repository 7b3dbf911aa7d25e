// The version of an interpreter in the texts of its file.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/parse_number.h"

namespace pe::languages {

struct VersionText {
  std::uint8_t major = 0, minor = 0;
  std::string_view rest;  ///< what follows: ".36"
};

/// Parses a text that starts with a version, "8.2.36"; nullopt for others.
inline std::optional<VersionText> parse_version_text(std::string_view text) {
  const auto take_number = [&text] {
    const auto digits = text.substr(0, text.find_first_not_of("0123456789"));
    text.remove_prefix(digits.size());
    return parse_number<std::uint8_t>(digits);
  };
  const auto major = take_number();
  if (!major || !text.starts_with('.'))
    return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number();
  return minor ? std::optional(VersionText{*major, *minor, text}) : std::nullopt;
}

}  // namespace pe::languages
