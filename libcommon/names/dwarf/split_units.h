// Reads split DWARF: the program has only a skeleton of a unit.  The unit's entries are in a
// file of their own (.dwo), or in a package of such files (.dwp).  Private to dwarf/.
//
// libdw would open any file that a skeleton names, and does not know packages (elfutils 0.188).  So
// we copy the unit's sections into an image in which it is an ordinary unit.  The copy has the
// unit's own part of .debug_addr and, for DWARF 4, of .debug_ranges.  The unit's ranges are
// relative to the skeleton's DW_AT_low_pc, which the copy lacks.  To compensate, this value, the
// `bias`, is subtracted from the addresses in the copy.
// Source: DWARF 5, 3.1.2 "Skeleton Compilation Unit Entries", 7.3.2 "Split DWARF Object Files".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "names/dwarf/debug_image.h"
#include "objects/debug_file.h"
#include "objects/image.h"

namespace pe::names {

// Reads a DWARF package (.dwp): the split units of a program, joined in one file.  Private to
// dwarf/.
//
// .debug_cu_index starts with {u32 version, u32 columns, u32 units, u32 slots}.  A hash table
// follows: `slots` u64 unit ids and `slots` u32 rows (0: free).  Then come a u32 section kind for
// each column, `units` rows of u32 offsets and `units` rows of u32 sizes.  Version 2 is the
// extension to DWARF 4.  Its version is a u32; version 5 has a u16 and padding instead.  Both
// number the sections that we need alike.
// Source: DWARF 5, 7.3.5 "DWARF Package Files"; the GNU wiki's DebugFissionDWP for version 2.

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

/// The attributes of a unit that are in its skeleton.
struct Skeleton {
  std::string_view file, folder;  ///< DW_AT_dwo_name, DW_AT_comp_dir
  std::uint64_t unit_id = 0;
  std::uint64_t low_pc = 0;
  std::uint64_t addr_base = 0;    ///< start of its addresses in .debug_addr
  std::uint64_t ranges_base = 0;  ///< start of its ranges in .debug_ranges (DWARF 4)
  unsigned version = 0;
  unsigned address_bytes = 0;  ///< 4 or 8
};

/// Returns nullopt for a unit that is no skeleton.
std::optional<Skeleton> skeleton_of(Dwarf_Die& unit);

/// Finds the end of each unit's part in the program's sections: the start of the next unit's part.
class SkeletonParts {
 public:
  void add(const Skeleton& skeleton);
  /// Call this after the last add().
  void sort();
  [[nodiscard]] std::uint64_t addr(std::uint64_t base) const { return next(addr_, base); }
  [[nodiscard]] std::uint64_t ranges(std::uint64_t base) const { return next(ranges_, base); }

 private:
  static std::uint64_t next(const std::vector<std::uint64_t>& bases, std::uint64_t base);

  std::vector<std::uint64_t> addr_, ranges_;
};

class SplitUnits {
 public:
  /// `paths` are those of the program, which `owner` has, and of its separate debug file; packages
  /// may be beside them.  `finder` must outlive this.  All units together keep at most
  /// `limit_bytes`.
  SplitUnits(objects::DebugFinder& finder, std::vector<std::string> paths, uid_t owner,
             std::uint64_t limit_bytes)
      : finder_(finder), paths_(std::move(paths)), owner_(owner), left_bytes_(limit_bytes) {}

  /// Returns an image with the unit; without bytes if there is none.  `program` is the image with
  /// the skeleton, and `parts` are those of all its skeletons.
  DebugImage find(const Skeleton& skeleton, const DebugImage& program, const SkeletonParts& parts);

 private:
  std::optional<SplitSections> in_package(const Skeleton& skeleton);
  std::optional<SplitSections> in_file(const Skeleton& skeleton);
  [[nodiscard]] std::vector<std::string> candidates(const Skeleton& skeleton) const;

  objects::DebugFinder& finder_;
  std::vector<std::string> paths_;
  uid_t owner_;
  std::uint64_t left_bytes_;
  bool has_looked_for_package_ = false;
  std::optional<SplitPackage> package_;
};

/// Returns the unit with that id from an image that find() made.
std::optional<Dwarf_Die> split_unit(Dwarf* dwarf, std::uint64_t unit_id);

}  // namespace pe::names
