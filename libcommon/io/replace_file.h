// A file that is always whole: the old one or the new one.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pe::io {

/// What a new file outlives.
enum class Outlives {
  kProcess,  ///< our own end, however it comes
  kMachine,  ///< the machine's, too: it is on the disk
};

/// Writes `content` to a new file beside `path` and gives it that name, in place of what
/// was there; a symbolic link is replaced, not followed.  Throws Error.
void replace_file(const std::string& path, std::string_view content,
                  Outlives outlives = Outlives::kProcess);

/// The last part of `path`, if `name` is what replace_file() calls the new file as long as it is
/// not whole: one that is left over is of a process that was killed.  Dies with `name`.
std::optional<std::string_view> replaced_by(std::string_view name);

}  // namespace pe::io
