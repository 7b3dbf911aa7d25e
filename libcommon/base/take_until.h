// Taking a line apart, field by field.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

namespace pe {

/// Cuts off what stands before the first `separator`, and the separator; nullopt
/// (and `text` as it was) if it is not there.
inline std::optional<std::string_view> take_until(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  if (end == std::string_view::npos)
    return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + 1);
  return taken;
}

}  // namespace pe
