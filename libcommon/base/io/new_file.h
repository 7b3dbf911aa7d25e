// The only way in which the tools create files.
//
// Another user may have put a symbolic link, a FIFO or a file at a name that they could guess.  So
// O_EXCL creates a new file under a random name in the folder of the result.  rename(2) then
// replaces the entry that has the result's name, without opening it.  The folder is opened once,
// and its descriptor is used from then on: nobody can put another folder in its place meanwhile.
// scripts/dev/check-files finds code that creates files in any other way.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"

namespace pe {

/// The place of a file: its folder, which is open, and its name there.
struct Place {
  /// Opens the folder of `path`; symbolic links lead to it.  Throws Error, also if `path` is a
  /// folder by its form ("a/", "..").
  explicit Place(const std::string& path);

  std::string path;  ///< for messages
  Fd folder;         ///< opened with O_PATH
  std::string name;
};

class NewFile {
 public:
  /// Creates a file beside `path`; `mode` is as in open(2).  Throws Error about `path`.
  explicit NewFile(const std::string& path, unsigned mode = 0666) : NewFile(Place(path), mode) {}
  explicit NewFile(Place place, unsigned mode = 0666);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  /// Removes the file unless keep() gave it its name.
  ~NewFile();

  /// Returns the descriptor, to read and to write; this object still owns it.
  [[nodiscard]] const Fd& fd() const noexcept { return fd_; }
  /// Gives the file its name, and replaces any entry of that name: a symbolic link is replaced, not
  /// followed.  Throws Error.
  void keep();
  /// Syncs the folder, because only that makes the name of a file survive a crash of the machine.
  /// Throws Error.
  void sync_folder() const;

 private:
  Place place_;
  std::string draft_;  ///< the random name; empty once the file has its own
  Fd fd_;
};

/// Makes `path` a symbolic link to `target`, and replaces any entry of that name.  Throws Error.
void replace_link(const std::string& path, const std::string& target);

}  // namespace pe
