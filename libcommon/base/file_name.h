// The last part of a path.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace pe {

/// Returns the part after the last '/', or the whole path if nothing follows the '/'.  Returns at
/// most 255 bytes (NAME_MAX), because only malicious input has a longer name.
inline std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  constexpr std::size_t kMaxBytes = 255;
  const bool has_folder = slash != std::string_view::npos && slash + 1 != path.size();
  return (has_folder ? path.substr(slash + 1) : path).substr(0, kMaxBytes);
}

}  // namespace pe
