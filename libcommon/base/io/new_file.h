// The one way in which the tools create files.
//
// Anybody may have put a symbolic link, a FIFO or a file of their own at a name that they could
// guess.  So a new file starts with a random name in the folder of the result, by O_EXCL, and
// rename(2) then replaces what has the result's name, without opening it.  scripts/dev/check-files
// finds every other way in the sources.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace pe {

class NewFile {
 public:
  /// Creates a file beside `path`; `mode` is as in open(2).  Throws Error about `path`.
  explicit NewFile(std::string path, unsigned mode = 0666);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  /// Removes the file unless keep() gave it its name.
  ~NewFile();

  /// To read and to write; it stays this object's.
  [[nodiscard]] const Fd& fd() const noexcept { return fd_; }
  /// Gives the file its name, in place of what had it: a symbolic link is replaced, not followed.
  /// Throws Error.
  void keep();

 private:
  std::string path_;
  std::string draft_;  ///< the random name; empty once the file has its own
  Fd fd_;
};

/// Makes `path` a symbolic link to `target`, in place of what had the name.  Throws Error.
void replace_link(const std::string& path, const std::string& target);

/// The last part of `path`, if `name` is the random name of a NewFile: one that is left is of a
/// process that was killed.  Dies with `name`.
std::optional<std::string_view> replaced_by(std::string_view name);

}  // namespace pe
