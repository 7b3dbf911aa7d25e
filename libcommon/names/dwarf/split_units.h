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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "names/dwarf/debug_image.h"
#include "names/dwarf/split_package.h"
#include "objects/debug_file.h"

namespace pe::names {

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
