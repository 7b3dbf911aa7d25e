// A file that is always whole: the old one or the new one.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe {

/// What a new file outlives.
enum class Outlives {
  kProcess,  ///< our own end, however it comes
  kMachine,  ///< the machine's, too: it is on the disk
};

/// Writes `content` to a new file beside `path` and gives it that name, in place of what
/// was there; a symbolic link is replaced, not followed.  Throws Error.
void replace_file(const std::string& path, std::string_view content,
                  Outlives outlives = Outlives::kProcess);

}  // namespace pe
