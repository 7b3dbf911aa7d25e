// Keeps binaries for later.  The cache is perf's own, so perf and these tools find each other's
// binaries.
//
//   ~/.debug/PATH/ID/elf                 a binary, PATH as its process saw it
//   ~/.debug/.build-id/ID[0:2]/ID[2:]    a symbolic link to that folder; from perf before 4.10 a
//                                        link to a file, PATH/ID
//   ~/.debug/.kept/ID                    a symbolic link to PATH/ID/elf, if we kept it
//   ~/.debug/.kept/ID-B-D-I-C            a binary for one recording only: boot, device, inode and
//                                        time of change
//
// The author of a file chooses its build id.  So a file whose author may be another user names only
// recordings of that very file.  When the files in .kept exceed the limit, those go that were not
// used for the longest time.
//
// Source: tools/perf/util/build-id.c (build_id_cache__linkname, build_id_cache__add_s);
// tools/perf/Documentation/perf-buildid-cache.txt.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "objects/image.h"
#include "stream/proc/process_table.h"

namespace pe::objects {

/// Formats a build id as "5e0a…": two hexadecimal digits a byte.
std::string hex(std::string_view build_id);

class BuildIdCache {
 public:
  /// The default limit for all files that these tools keep.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{512} << 20;

  /// `folder` is the folder of the cache, which need not exist yet; empty: there is no cache.
  explicit BuildIdCache(std::string folder, std::uint64_t max_bytes = kMaxBytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}
  /// Returns the cache in ~/.debug; without HOME there is no cache.  STACKPIPE_CACHE_MIB in the
  /// environment changes its limit.
  static BuildIdCache of_user();

  /// Returns the image that was kept for this very file, or one of its build id that is trusted,
  /// after comparing the build id.  Reads nothing from a cache that others may write.
  [[nodiscard]] std::optional<Image> open(const stream::MappedFile& file) const;

  enum class Kept {
    kYes,        ///< kept now, or before
    kTooLarge,   ///< the file exceeds the limit of the cache
    kNotOurs,    ///< a folder on the way belongs to another user, or is a symbolic link
    kChanged,    ///< the file changed while it was copied
    kNotWritten  ///< the disk is full, or the folder cannot be written
  };
  enum class Names : bool {
    kThisFile,  ///< only recordings of this very file, whose identity must be known
    kBuildId,   ///< all files with its build id, also for perf
  };
  /// Copies an open ELF file into the cache, as the mapped `file`.  The copy appears whole or not
  /// at all, readable to its owner only.  keep() writes only inside the cache, for every path: it
  /// enters neither symbolic links nor folders of other users.
  [[nodiscard]] Kept keep(const stream::MappedFile& file, int fd, Names names) const;

  [[nodiscard]] std::uint64_t max_bytes() const noexcept { return max_bytes_; }

 private:
  std::string folder_;
  std::uint64_t max_bytes_;
};

}  // namespace pe::objects
