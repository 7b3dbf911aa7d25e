// Binaries kept for later, by build id: perf's own cache, so that either finds what the other kept.
//
//   ~/.debug/PATH/ID/elf                 a binary, PATH as its process saw it
//   ~/.debug/.build-id/ID[0:2]/ID[2:]    a symbolic link to that folder; of perf before 4.10 to a
//                                        file, PATH/ID
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

/// "5e0a…": two hexadecimal digits a byte.
std::string hex(std::string_view build_id);

class BuildIdCache {
 public:
  /// `folder` is where the cache is, or will be; empty: there is none.
  explicit BuildIdCache(std::string folder) : folder_(std::move(folder)) {}
  /// ~/.debug; none without a HOME.
  static BuildIdCache of_user();

  /// The kept image of that build id (its bytes), which has been compared; nullopt if there is
  /// none.
  [[nodiscard]] std::optional<Image> open(std::string_view build_id) const;

  enum class Kept {
    kYes,        ///< now, or before
    kTooLarge,   ///< over kMaxFileBytes
    kNotOurs,    ///< a folder on the way is another user's, or a symbolic link
    kChanged,    ///< the file became another one while it was copied
    kNotWritten  ///< the disk is full, or the folder cannot be written
  };
  /// Copies an open ELF file of that build id into the cache, as what was mapped from `path`.  It
  /// appears whole or not at all, readable to its owner only.  Nothing outside of the folder is
  /// written, whatever `path` is: symbolic links and folders of others are not entered.
  [[nodiscard]] Kept keep(const std::string& path, std::string_view build_id, int file) const;

  static constexpr std::uint64_t kMaxFileBytes = std::uint64_t{512} << 20;

 private:
  std::string folder_;
};

}  // namespace pe::objects
