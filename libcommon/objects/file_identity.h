// The rules by which two files are one, and by which a file may stand for another.
//
// A build id is no proof: the author of a file can copy it from another file.  So files of which
// one is open are the same if device, inode and time of change are.  A file that was recorded with
// a build id may be found again at another time, or on another machine, where only the build id is
// left.  Then the file that is found must be one that no other user could have put there.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/io/regular_file.h"
#include "objects/image.h"
#include "stream/proc/process_table.h"

namespace pe::objects {

/// Returns nullopt for an image that is not an open file.
std::optional<FileIdentity> identity_of(const Image& image);

/// Returns the user who owns the file; this process's user for an image that is not an open file.
uid_t file_owner(const Image& image);

/// Can only root and this process's user have written the file?
bool is_trusted(const struct stat& status);

/// Was the file recorded since this system started?  Only then do its device and inode mean
/// something here.
bool is_of_this_boot(const stream::MappedFile& recorded);
/// Is the open file the recorded one?  True if the record does not identify it.
bool may_be(const struct stat& status, const stream::MappedFile& recorded);

struct ProgramFile {
  std::string path;  ///< as the kernel will report it: without symbolic links
  Image image;
};
/// Opens a program that will be started; nullopt if it is no ELF file.
std::optional<ProgramFile> open_program(const std::string& path);

}  // namespace pe::objects
