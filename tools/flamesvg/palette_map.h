// Reads and writes the file palette.map of --cp, which keeps the colours of functions the same
// in several flame graphs.
//
// A line is "name->rgb(R,G,B)", as in flamegraph.pl.  Colours are parsed as
// numbers only, so that no line can become part of the page.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "painting/svg/colors.h"

// A file that is always whole: the old one or the new one.

namespace pe {

/// The failure that a new file survives.
enum class Outlives {
  kProcess,  ///< any end of our process
  kMachine,  ///< also a crash of the machine: the file is on the disk
};

/// Writes `content` to a new file beside `path`, and renames it to `path`.  A symbolic link of that
/// name is replaced, not followed.  Throws Error.
void replace_file(const std::string& path, std::string_view content,
                  Outlives outlives = Outlives::kProcess);

}  // namespace pe

namespace pe::flamesvg {

class PaletteMap {
 public:
  /// Returns an empty map if the file does not exist.  Throws Error if it cannot be read.
  static PaletteMap read(const std::string& path);
  /// Replaces the file, lines in bytewise order.  Throws Error.
  void write(const std::string& path) const;

  /// find() and add() ignore separators between parts of a stack, whose colours are fixed.
  [[nodiscard]] std::optional<painting::Rgb> find(std::string_view name) const;
  void add(std::string_view name, painting::Rgb color);
  /// Number of lines that are not "name->rgb(R,G,B)".
  [[nodiscard]] std::uint64_t ignored_lines() const noexcept { return ignored_lines_; }

 private:
  std::map<std::string, painting::Rgb, std::less<>> colors_;
  std::uint64_t ignored_lines_ = 0;
};

/// Parses "rgb(R,G,B)"; blanks around the numbers are allowed.
std::optional<painting::Rgb> parse_rgb(std::string_view text);

}  // namespace pe::flamesvg
