// A file that is always whole: the old one or the new one.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::io {

/// Writes `content` to a new file beside `path` and gives it that name, in place of what
/// was there; a symbolic link is replaced, not followed.  Throws Error.
void replace_file(const std::string& path, std::string_view content);

}  // namespace pe::io
