// The file palette.map of --cp: functions keep their colours from picture to picture.
//
// A line is "name->rgb(R,G,B)", as flamegraph.pl writes it.  Colours are read as
// numbers and nothing else, so that no line can become part of the page.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "picture/svg/colors.h"

namespace pe::flamesvg {

class PaletteMap {
 public:
  /// A file that is not there is an empty map.  Throws Error if it cannot be read.
  static PaletteMap read(const std::string& path);
  /// Replaces the file, lines in bytewise order.  Throws Error.
  void write(const std::string& path) const;

  /// Separators between parts of a stack have colours of their own: find() and add() skip them.
  [[nodiscard]] std::optional<picture::Rgb> find(std::string_view name) const;
  void add(std::string_view name, picture::Rgb color);
  /// Lines that are no "name->rgb(R,G,B)".
  [[nodiscard]] std::uint64_t ignored_lines() const noexcept { return ignored_lines_; }

 private:
  std::map<std::string, picture::Rgb, std::less<>> colors_;
  std::uint64_t ignored_lines_ = 0;
};

/// The colour that "rgb(R,G,B)" names; blanks may stand around the numbers.
std::optional<picture::Rgb> parse_rgb(std::string_view text);

}  // namespace pe::flamesvg
