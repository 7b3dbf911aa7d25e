// The tables of the files that processes have mapped, as words in the kernel's chunks.
//
// A file is read and packed when a process that has it mapped is first told to the kernel, once,
// whatever processes share it, and stays.  All its functions are compiled then: clang with libLLVM
// and all else that it maps, 2.5 million rows, takes 0.4 s of CPU time.
//
// What hostile processes can make us do by mapping ever more files is bounded by Limits.  A file
// beyond them is left out: its code is in no mapping that the kernel knows, so stacks that lead
// there are left to user space.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "objects/build_id_cache.h"
#include "objects/image.h"
#include "objects/mapped_image.h"
#include "unwind/kernel/rule_numbers.h"
#include "unwind/kernel/table_packer.h"
#include "unwind/kernel/table_store.h"
#include "unwind/kernel/word_pool.h"

namespace pe::unwind {

struct PackedImage {
  enum class Kind : std::uint8_t {
    kWithoutRules,  ///< no CFI in it, or it could not be had
    kPacked,
    kLeftOut,
  };
  Kind kind = Kind::kWithoutRules;
  // Of kPacked:
  std::vector<objects::Segment> segments = {};
  CodeRange range = {};               ///< for which there is an index; begins with a block
  std::uint32_t index = 0, rows = 0;  ///< words
};

class PackedImages {
 public:
  struct Limits {
    /// Of all files' unwind sections together: less than 50 MB where every compiler is installed.
    std::size_t section_bytes = std::size_t{1} << 29;
    std::uint32_t words = WordPool::kMaxWords / 4;  ///< 256 MiB
    std::uint32_t rules = kMaxRules;
  };
  struct Statistics {
    std::size_t files = 0;          ///< with a table
    std::size_t without_rules = 0;  ///< files that could not be had, or have no unwind information
    std::size_t left_out = 0;       ///< files beyond the limits
    std::size_t functions = 0;
    std::size_t functions_left_out = 0;  ///< as FlatRows::left_out
    std::size_t rows = 0;
    std::size_t unsupported_rows = 0;  ///< that only user space can follow
  };

  /// `store` must outlive this.
  PackedImages(TableStore& store, objects::FileMatch match, const Limits& limits);

  /// Of a mapped file; `pid` is a process in which it may be found.  Lives until the next call.
  const PackedImage& of(const stream::Mapping& mapping, std::uint32_t pid);

  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] const RuleNumbers& rules() const noexcept { return rules_; }
  [[nodiscard]] std::uint32_t words() const noexcept { return pool_.next(); }

 private:
  PackedImage open(const stream::Mapping& mapping, std::uint32_t pid);
  PackedImage pack_image(const objects::Image& image);

  objects::FileMatch match_;
  objects::BuildIdCache cache_ = objects::BuildIdCache::of_user();
  RuleNumbers rules_;
  WordPool pool_;
  std::size_t left_section_bytes_;
  /// By file as it was recorded, not by build id: whoever writes a file chooses that.
  std::unordered_map<const stream::MappedFile*, PackedImage> images_;
  Statistics statistics_;
};

}  // namespace pe::unwind
