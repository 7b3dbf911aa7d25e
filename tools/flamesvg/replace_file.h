// A file that is always whole: the old one or the new one.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe {

/// The failure that a new file survives.
enum class Outlives {
  kProcess,  ///< any end of our process
  kMachine,  ///< also a crash of the machine: the file is on the disk
};

/// Writes `content` to a new file beside `path`, and renames it to `path`.  A symbolic link of that
/// name is replaced, not followed.  Throws Error.
void replace_file(const std::string& path, std::string_view content,
                  Outlives outlives = Outlives::kProcess);

}  // namespace pe
