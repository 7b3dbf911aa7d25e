// Split DWARF: units whose entries are in a file of their own (.dwo), or in a package of such
// (.dwp), and of which the program has only a skeleton.  Private to dwarf/.
//
// libdw would open the files itself, whatever their names lead to, and does not know packages
// (elfutils 0.188).  So the unit's sections are copied into an image in which it is a unit
// like any other: with the part of .debug_addr that is its own, and (DWARF 4) that of
// .debug_ranges.  What its ranges are relative to, the skeleton's DW_AT_low_pc, is not in it;
// instead addresses in the copy are less by that: `bias`. Source: DWARF 5, 3.1.2 "Skeleton
// Compilation Unit Entries", 7.3.2 "Split DWARF Object Files".
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

/// What the skeleton says about its unit.
struct Skeleton {
  std::string_view file, folder;  ///< DW_AT_dwo_name, DW_AT_comp_dir
  std::uint64_t unit_id = 0;
  std::uint64_t low_pc = 0;
  std::uint64_t addr_base = 0;    ///< where its addresses begin in .debug_addr
  std::uint64_t ranges_base = 0;  ///< the same in .debug_ranges, of DWARF 4
  unsigned version = 0;
  unsigned address_bytes = 0;  ///< 4 or 8
};

/// nullopt for a unit that is no skeleton.
std::optional<Skeleton> skeleton_of(Dwarf_Die& unit);

/// Where the units' parts of the program's sections end: where the next unit's begins.
class SkeletonParts {
 public:
  void add(const Skeleton& skeleton);
  /// After the last add().
  void sort();
  [[nodiscard]] std::uint64_t addr(std::uint64_t base) const { return next(addr_, base); }
  [[nodiscard]] std::uint64_t ranges(std::uint64_t base) const { return next(ranges_, base); }

 private:
  static std::uint64_t next(const std::vector<std::uint64_t>& bases, std::uint64_t base);

  std::vector<std::uint64_t> addr_, ranges_;
};

class SplitUnits {
 public:
  /// `paths`: of the program and of its separate debug file, beside which packages may lie.
  /// `finder` must outlive it.  At most `limit_bytes` will be kept of all units together.
  SplitUnits(objects::DebugFinder& finder, std::vector<std::string> paths,
             std::uint64_t limit_bytes)
      : finder_(finder), paths_(std::move(paths)), left_bytes_(limit_bytes) {}

  /// An image with the unit; without bytes if there is none.  `program` is the one that the
  /// skeleton is in, `parts` those of all its skeletons.
  DebugImage find(const Skeleton& skeleton, const DebugImage& program, const SkeletonParts& parts);

 private:
  std::optional<SplitSections> in_package(const Skeleton& skeleton);
  std::optional<SplitSections> in_file(const Skeleton& skeleton);
  [[nodiscard]] std::vector<std::string> candidates(const Skeleton& skeleton) const;

  objects::DebugFinder& finder_;
  std::vector<std::string> paths_;
  std::uint64_t left_bytes_;
  bool has_looked_for_package_ = false;
  std::optional<SplitPackage> package_;
};

/// The unit of that id in an image that find() made.
std::optional<Dwarf_Die> split_unit(Dwarf* dwarf, std::uint64_t unit_id);

}  // namespace pe::names
