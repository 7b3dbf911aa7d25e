// A large library that scripts/setup installs: libLLVM, which clang needs.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

namespace pe::testing {

/// The path of the installed libLLVM whose name sorts last; empty if there is none.
inline std::string large_library() {
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/x86_64-linux-gnu"))
    if (const std::string name = entry.path().filename();
        name.starts_with("libLLVM") && name.find(".so.") != std::string::npos)
      last = std::max(last, entry.path().string());
  return last;
}

}  // namespace pe::testing
