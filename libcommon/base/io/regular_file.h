// Opening files that someone else owns, without being hung or surprised by them.
//
// A path taken from a recording may name a FIFO, a device or a symbolic link
// by the time it is opened, and its owner may truncate the file while it is
// read.  So: never block, only regular files, and reads instead of a mapping.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "base/fd.h"

namespace pe {

/// Why a file could not be had.
enum class FileFailure {
  kMissing,     ///< there is nothing of that name
  kPermission,  ///< it exists, and is not for us
  kNotRegular,  ///< a folder, FIFO, device, socket, or a link where none is allowed
  kUnreadable,  ///< anything else: an I/O error, no descriptors left
};

enum class Links { kFollow, kRefuse };

struct RegularFile {
  Fd fd;
  std::uint64_t size_bytes;  ///< when it was opened; it may have changed since
  uid_t owner;
};

/// Opens `path` for reading; `links` says whether its last component may be a
/// symbolic link.  Never blocks, and what is no regular file is not even opened: that can
/// have effects (a FIFO's writer goes on, a device starts).
std::variant<RegularFile, FileFailure> open_regular(const std::string& path,
                                                    Links links = Links::kFollow);

/// The same for what an O_PATH descriptor stands for (open(2)).
std::variant<RegularFile, FileFailure> open_regular(const Fd& path);

/// The same, but for files that somebody has stored: those of /proc and /sys are the kernel's, and
/// to open them can have effects, too.  Links of /proc that lead to stored files are fine.
std::variant<RegularFile, FileFailure> open_stored(const std::string& path,
                                                   Links links = Links::kFollow);
std::variant<RegularFile, FileFailure> open_stored(const Fd& path);

/// The same checks for what is open already.
std::variant<RegularFile, FileFailure> check_regular(Fd fd);

/// Reads at `offset` without moving until `into` is full; how many bytes that
/// were, fewer at the end of the file and after an error.
std::size_t read_at(const Fd& fd, std::uint64_t offset, std::span<std::byte> into);

}  // namespace pe
