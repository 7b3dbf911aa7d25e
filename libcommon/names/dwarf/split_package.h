// A DWARF package (.dwp): the split units of a program, joined in one file.  Private to dwarf/.
//
// .debug_cu_index: {u32 version, u32 columns, u32 units, u32 slots}, a hash table of `slots` u64
// unit ids and as many u32 rows (0: free), a u32 section kind for each column, then `units` rows of
// u32 offsets and as many of u32 sizes.  Version 5 has a u16 and padding where 2, the
// extension to DWARF 4, has a u32; they number the sections alike as far as we need them.
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
  /// Reads the index and the strings; the rest is read unit by unit.  Sections that do not fit
  /// `limit_bytes` are taken for missing.
  SplitPackage(objects::Image image, std::uint64_t limit_bytes);

  /// nullopt if the unit is not there, or the package damaged, or it exceeds `limit_bytes`.
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
  /// Sections that are compressed, which have no parts before they are read as a whole.
  std::map<std::string_view, std::vector<std::byte>> uncompressed_;
  std::uint32_t version_ = 0, columns_ = 0, units_ = 0, slots_ = 0;
};

/// Makes `sections.str` hold only what `sections.str_offsets` names among `strings`, and corrects
/// the offsets.  `version` is that of the unit; false if that takes more than `limit_bytes`.
bool compact_strings(SplitSections& sections, Bytes strings, unsigned version,
                     std::uint64_t limit_bytes);

}  // namespace pe::names
