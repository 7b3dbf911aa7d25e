// The unwind tables of the files that processes have mapped.
//
// A file is opened when a stack first reaches its code, read once, and closed again.  A malicious
// process may map ever more files, so the work is bounded.  Files beyond kMaxTableBytes have no
// table, and stacks report that they ended in them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "objects/build_id_cache.h"
#include "objects/file_identity.h"
#include "objects/mapped_image.h"
#include "unwind/cfi/unwind_table.h"

namespace pe::unwind {

class Images {
 public:
  /// The process in which a file was found first pays from `budget`; null: no limits.
  explicit Images(objects::FileMatch match, std::size_t max_table_bytes = kMaxTableBytes,
                  Budget* budget = nullptr)
      : match_(match), budget_(budget), left_bytes_(max_table_bytes) {}

  /// Returns the number of a mapped file.  `pid` is a process in which the file may be found.
  std::uint32_t number_of(const stream::Mapping& mapping, std::uint32_t pid);

  /// Returns nullptr if the file is unavailable, or there is no room left for it.
  UnwindTable* table(std::uint32_t number);

  /// Whether a file has no table because descriptors ran out (ulimit -n) at its last request.
  [[nodiscard]] bool lacked_descriptors(const stream::MappedFile& file) const;

  /// The limit for the sections of all files together.  They take less than 50 MB on a machine with
  /// every compiler installed.
  static constexpr std::size_t kMaxTableBytes = std::size_t{1} << 30;

 private:
  struct Image {
    stream::Mapping mapping;  ///< one of the file's mappings
    pid_t pid;                ///< a process in which the file may be found
    bool is_opened = false;
    bool lacked_descriptors = false;
    std::shared_ptr<UnwindTable> table;
    KeptBytes kept = {};  ///< by the table
  };
  std::shared_ptr<UnwindTable> table_of(const objects::Image& elf, bool& is_new);

  void open(Image& image);

  objects::FileMatch match_;
  Budget* budget_;
  objects::BuildIdCache cache_ = objects::BuildIdCache::of_user();
  std::size_t left_bytes_;
  objects::SharedFiles files_{&cache_};
  std::map<std::pair<const stream::MappedFile*, std::uint32_t>, std::uint32_t> numbers_;
  std::map<FileIdentity, std::shared_ptr<UnwindTable>> by_identity_;
  std::vector<Image> images_;
};

}  // namespace pe::unwind
