// Identifies files of this machine, to find out whether two descriptors or paths lead to one file.
//
// Its author chooses a file's path, build id and content, but not these numbers.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <string>

namespace pe {

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
