// Opens files that someone else owns, without blocking and without side effects.
//
// A path from a recording may name a FIFO, a device or a symbolic link by the time it is opened.
// Its owner may truncate the file while it is read.  So these functions never block, open only
// regular files, and read instead of mapping.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "base/fd.h"

namespace pe {

/// Why a file could not be opened.
enum class FileFailure {
  kMissing,     ///< nothing has that name
  kPermission,  ///< it exists, but we may not read it
  kNotRegular,  ///< a folder, FIFO, device, socket, or a link where none is allowed
  kUnreadable,  ///< anything else: an I/O error, no descriptors left
};

enum class Links { kFollow, kRefuse };

struct RegularFile {
  Fd fd;
  std::uint64_t size_bytes;  ///< when it was opened; it may have changed since
  uid_t owner;
};

/// Opens `path` for reading; `links` selects whether its last component may be a symbolic link.
/// Never blocks, and never opens anything but a regular file, because that can have effects (a
/// FIFO's writer continues, a device starts).
std::variant<RegularFile, FileFailure> open_regular(const std::string& path,
                                                    Links links = Links::kFollow);

/// Does the same for the file of an O_PATH descriptor (open(2)).
std::variant<RegularFile, FileFailure> open_regular(const Fd& path);

/// Does the same, but only for stored files.  The kernel generates the files of /proc and /sys, and
/// opening them can also have effects.  Links in /proc that lead to stored files are accepted.
std::variant<RegularFile, FileFailure> open_stored(const std::string& path,
                                                   Links links = Links::kFollow);
std::variant<RegularFile, FileFailure> open_stored(const Fd& path);

/// Makes the same checks on a file that is open already.
std::variant<RegularFile, FileFailure> check_regular(Fd fd);

/// Reads at `offset`, without moving the file's position, until `into` is full.  Returns the number
/// of bytes: fewer at the end of the file and after an error.
std::size_t read_at(const Fd& fd, std::uint64_t offset, std::span<std::byte> into);

// Identifies files of this machine, to find out whether two descriptors or paths lead to one file.
//
// Its author chooses a file's path, build id and content, but not these numbers.

/// Device and inode, as stat(2) returns them, while one system runs.  The time differs once the
/// file was changed, or if a new file has got its inode: no user can set it.
struct FileIdentity {
  std::uint64_t boot = 0;  ///< boot_number(); 0: the identity is unknown
  std::uint64_t device = 0, inode = 0;
  std::uint64_t changed_ns = 0;  ///< st_ctim
  auto operator<=>(const FileIdentity&) const = default;

  [[nodiscard]] bool is_known() const noexcept { return boot != 0; }
};

/// Identifies the file with that status.
FileIdentity identity_of(const struct stat& status);
/// Identifies the file at `path`, which may be a link of /proc; unknown if there is none.
FileIdentity identity_at(const std::string& path);

/// Returns a number that the running system has from its start to its end, from
/// /proc/sys/kernel/random/boot_id (random(4)).  Never 0.
std::uint64_t boot_number();

}  // namespace pe
