// Keeps binaries for later, by build id.  The cache is perf's own, so perf and these tools find
// each other's binaries.
//
//   ~/.debug/PATH/ID/elf                 a binary, PATH as its process saw it
//   ~/.debug/.build-id/ID[0:2]/ID[2:]    a symbolic link to that folder; from perf before 4.10 a
//                                        link to a file, PATH/ID
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

namespace pe::objects {

/// Formats a build id as "5e0a…": two hexadecimal digits a byte.
std::string hex(std::string_view build_id);

class BuildIdCache {
 public:
  /// `folder` is the folder of the cache, which need not exist yet; empty: there is no cache.
  explicit BuildIdCache(std::string folder) : folder_(std::move(folder)) {}
  /// Returns the cache in ~/.debug; without HOME there is no cache.
  static BuildIdCache of_user();

  /// Returns the kept image of that build id (its bytes), after comparing the id of the file;
  /// nullopt if there is none.
  [[nodiscard]] std::optional<Image> open(std::string_view build_id) const;

  enum class Kept {
    kYes,        ///< kept now, or before
    kTooLarge,   ///< the file exceeds kMaxFileBytes
    kNotOurs,    ///< a folder on the way belongs to another user, or is a symbolic link
    kChanged,    ///< the file changed while it was copied
    kNotWritten  ///< the disk is full, or the folder cannot be written
  };
  /// Copies an open ELF file of that build id into the cache, as the file mapped from `path`.  The
  /// copy appears whole or not at all, readable to its owner only.  keep() writes only inside the
  /// cache, for every `path`: it enters neither symbolic links nor folders of other users.
  [[nodiscard]] Kept keep(const std::string& path, std::string_view build_id, int file) const;

  static constexpr std::uint64_t kMaxFileBytes = std::uint64_t{512} << 20;

 private:
  std::string folder_;
};

}  // namespace pe::objects
