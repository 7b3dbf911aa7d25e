// Finds the functions to which the code at an address belongs: the function that contains it, and
// the functions that the compiler inlined there, each with its source line.
//
// Inlines reads .debug_info and .debug_line of one image, or of its separate debug file, through
// libdw.  It includes the parts that dwz(1) moved elsewhere, and split units (.dwo, .dwp).  All
// files are untrusted: libdw sees copies (debug_image.h) and opens no file, walks go forward only,
// and their cost is bounded.
// The first look-up in a unit lists the unit's functions, and the first one in a function lists
// what it has inlined.
// Sources: DWARF 5, 3.3.8 "Inlinable and Inlined Subroutines", 2.17 "Code Addresses".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "objects/debug_file.h"
#include "objects/image.h"

namespace pe::names {

/// The views live as long as the Inlines that returned them; unknown text is empty.
struct SourceFrame {
  std::string_view linkage_name;  ///< mangled; C functions and local ones have none
  /// As in the source; a C++ function without linkage name has its namespaces and classes.
  std::string_view name;
  std::string_view file;   ///< with the folder, as the compiler recorded it
  std::uint32_t line = 0;  ///< current line in this function; 0: unknown
};

class Inlines {
 public:
  /// Reads the debug sections of `image`, which is not needed afterwards.
  /// Does not search other files.
  explicit Inlines(const objects::Image& image);
  /// Does the same for `image`, opened as `path`, or, if that has no debug sections, for its
  /// separate debug file.  `finder` must outlive the Inlines: the first look-up in a split unit
  /// searches its file.  finder.refused() lists files that do not belong to the image.
  Inlines(const objects::Image& image, const std::string& path, objects::DebugFinder& finder);
  Inlines(const Inlines&) = delete;
  Inlines& operator=(const Inlines&) = delete;
  Inlines(Inlines&&) = delete;
  Inlines& operator=(Inlines&&) = delete;
  ~Inlines();

  /// Is there no code that at() could find?
  [[nodiscard]] bool is_empty() const noexcept;

  /// Returns the functions at `svma`: the innermost inlined function first, the function with the
  /// frame last.  Empty if no debug information covers `svma`, or if it is invalid.  Without
  /// `with_lines`, files and lines may be missing; that is faster.
  std::vector<SourceFrame> at(std::uint64_t svma, bool with_lines = true);

  /// Limit of all debug sections together, uncompressed.  Those of a clang with debug information
  /// take 1.5 GB.
  static constexpr std::uint64_t kMaxDebugBytes = std::uint64_t{2} << 30;
  /// Limit of functions inlined into each other; deeper ones are left out.
  static constexpr std::size_t kMaxDepth = 256;

 private:
  class Units;
  std::unique_ptr<Units> units_;  ///< null: no debug information
};

}  // namespace pe::names
