// Which functions the code at an address came from: the function it is in, and
// those that the compiler inlined there, each with its source line.
//
// Reads .debug_info and .debug_line of one image through libdw, or of its separate debug file, with
// what dwz(1) moved elsewhere and with split units (.dwo, .dwp).  All may be hostile: libdw
// sees copies (debug_image.h) and opens no file, walks go forward only, and what they may cost is
// bounded.
// A unit's functions are listed at the first look-up in it.
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

/// The views live as long as the Inlines they came from; an unknown one is empty.
struct SourceFrame {
  std::string_view linkage_name;  ///< mangled; C functions and local ones have none
  /// As in the source; of C++, without linkage name, with its namespaces and classes.
  std::string_view name;
  std::string_view file;   ///< with the folder, as the compiler was told
  std::uint32_t line = 0;  ///< where control is in this function; 0: unknown
};

class Inlines {
 public:
  /// Reads the debug sections of `image`, which is not needed afterwards.
  /// Nothing is looked for in other files.
  explicit Inlines(const objects::Image& image);
  /// The same of `image`, opened as `path`, or, if it has none, of its separate debug file.
  /// `finder` must outlive the Inlines: split units are looked for when an address falls into one.
  /// What is found and does not belong to the image is among finder.refused().
  Inlines(const objects::Image& image, const std::string& path, objects::DebugFinder& finder);
  Inlines(const Inlines&) = delete;
  Inlines& operator=(const Inlines&) = delete;
  Inlines(Inlines&&) = delete;
  Inlines& operator=(Inlines&&) = delete;
  ~Inlines();

  /// Is there nothing that at() could find?
  [[nodiscard]] bool is_empty() const noexcept;

  /// Units met so far whose entries should be in a .dwo or .dwp file, which is not there or belongs
  /// to another build.
  [[nodiscard]] std::size_t missing_split_units() const noexcept;

  /// The functions whose code is at `svma`, innermost inlined one first, the function that has
  /// a frame last.  Empty where no debug information covers it, or makes no sense.
  std::vector<SourceFrame> at(std::uint64_t svma);

  /// Together, uncompressed.  Those of a clang with debug information take 1.5 GB.
  static constexpr std::uint64_t kMaxDebugBytes = std::uint64_t{2} << 30;
  /// Functions inlined into each other; deeper ones are left out.
  static constexpr std::size_t kMaxDepth = 256;

 private:
  class Units;
  std::unique_ptr<Units> units_;  ///< none: no debug information
};

}  // namespace pe::names
