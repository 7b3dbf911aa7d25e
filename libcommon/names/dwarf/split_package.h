// Reads a DWARF package (.dwp): the split units of a program, joined in one file.  Private to
// dwarf/.
//
// .debug_cu_index starts with {u32 version, u32 columns, u32 units, u32 slots}.  A hash table
// follows: `slots` u64 unit ids and `slots` u32 rows (0: free).  Then come a u32 section kind for
// each column, `units` rows of u32 offsets and `units` rows of u32 sizes.  Version 2 is the
// extension to DWARF 4.  Its version is a u32; version 5 has a u16 and padding instead.  Both
// number the sections that we need alike.
// Source: DWARF 5, 7.3.5 "DWARF Package Files"; the GNU wiki's DebugFissionDWP for version 2.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "objects/image.h"

namespace pe::names {

/// The sections of one split unit.
struct SplitSections {
  std::vector<std::byte> info, abbrev, str, str_offsets, rnglists;

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return info.size() + abbrev.size() + str.size() + str_offsets.size() + rnglists.size();
  }
};

class SplitPackage {
 public:
  /// Reads the index, the strings and compressed sections; the rest is read unit by unit.  Sections
  /// that do not fit `limit_bytes` are treated as missing.
  SplitPackage(objects::Image image, std::uint64_t limit_bytes);

  /// Returns nullopt if the unit is missing or exceeds `limit_bytes`, or the package is damaged.
  std::optional<SplitSections> find(std::uint64_t unit_id, std::uint64_t limit_bytes) const;

 private:
  struct Part {
    std::uint64_t offset, bytes;
  };

  void read_header();
  [[nodiscard]] std::optional<std::uint32_t> row_of(std::uint64_t unit_id) const;
  [[nodiscard]] Part part(std::uint32_t row, std::uint32_t wanted) const;
  [[nodiscard]] std::optional<std::vector<std::byte>> read(std::string_view name, Part part,
                                                           std::uint64_t limit_bytes) const;

  objects::Image image_;
  std::vector<std::byte> index_, strings_;
  /// Compressed sections: they must be uncompressed as a whole before parts of them can be read.
  std::map<std::string_view, std::vector<std::byte>> uncompressed_;
  std::uint32_t version_ = 0, columns_ = 0, units_ = 0, slots_ = 0;
};

/// Copies the strings to which `sections.str_offsets` refers from `strings` to `sections.str`, and
/// corrects the offsets.  `version` is that of the unit.  False if the strings take more than
/// `limit_bytes`, or `sections.str_offsets` is malformed.
bool compact_strings(SplitSections& sections, Bytes strings, unsigned version,
                     std::uint64_t limit_bytes);

}  // namespace pe::names
