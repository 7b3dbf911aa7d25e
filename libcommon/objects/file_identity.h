// Files that are examined before a process maps them.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "objects/image.h"

namespace pe::objects {

/// Device and inode, as stat(2) returns them.  A change of the file, or of a new file that gets the
/// same inode, changes the times.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t modified_s = 0, modified_ns = 0;  ///< st_mtim
  std::int64_t changed_s = 0, changed_ns = 0;    ///< st_ctim
  auto operator<=>(const FileIdentity&) const = default;
};

/// Returns nullopt for an image that is not an open file.
std::optional<FileIdentity> identity_of(const Image& image);

struct ProgramFile {
  std::string path;  ///< as the kernel will report it: without symbolic links
  Image image;
};
/// Opens a program that will be started; nullopt if it is no ELF file.
std::optional<ProgramFile> open_program(const std::string& path);

}  // namespace pe::objects
