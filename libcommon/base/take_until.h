// Splits a line, field by field.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

namespace pe {

/// Removes the first `separator` and the bytes before it from `text`, and returns these bytes.
/// Returns nullopt and leaves `text` unchanged if there is no `separator`.
inline std::optional<std::string_view> take_until(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  if (end == std::string_view::npos)
    return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + 1);
  return taken;
}

}  // namespace pe
