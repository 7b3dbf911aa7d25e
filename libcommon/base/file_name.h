// The last part of a path.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace pe {

/// What follows the last '/'; all of it if nothing does.  At most 255 bytes (NAME_MAX) of it:
/// whoever writes a longer one means harm.
inline std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  constexpr std::size_t kMaxBytes = 255;
  const bool has_folder = slash != std::string_view::npos && slash + 1 != path.size();
  return (has_folder ? path.substr(slash + 1) : path).substr(0, kMaxBytes);
}

}  // namespace pe
