// Where things are on the page, in pixels.
//
// The margins follow from the font size as in flamegraph.pl, so that pictures
// keep their size when the one tool replaces the other.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::picture {

struct Geometry {
  double width = 1200;
  double frame_height = 16;
  double font_size = 12;
  /// Mean width of a glyph, in font sizes; what labels are cut by.
  double font_width = 0.59;
  bool has_subtitle = false;
  bool has_legend = false;
  bool inverted = false;  ///< root at the top
  /// As flamegraph.pl draws inverted pictures: the subtitle lies over the root's row.
  bool subtitle_overlaps = false;
  std::uint32_t levels = 0;  ///< rows of frames

  static constexpr double kSideMargin = 10;

  /// Above the frames: the title, and two lines that may be missing.
  [[nodiscard]] double top_margin() const {
    return (3 + (has_subtitle ? 2 : 0) + (has_legend ? 2 : 0)) * font_size;
  }
  [[nodiscard]] double bottom_margin() const { return 2 * font_size + 10; }
  [[nodiscard]] double height() const {
    return levels * frame_height + top_margin() + bottom_margin();
  }
  /// What the root's frame has.
  [[nodiscard]] double usable_width() const { return width - 2 * kSideMargin; }
  /// Top edge of the frames at `depth`; the root's is 0.
  [[nodiscard]] double frame_y(std::uint32_t depth) const {
    if (!inverted)  // a pixel between it and the one above
      return height() - bottom_margin() - (depth + 1) * frame_height + 1;
    const double subtitle = subtitle_overlaps && has_subtitle ? 2 * font_size : 0;
    return top_margin() - subtitle + depth * frame_height;
  }
  [[nodiscard]] double title_y() const { return 2 * font_size; }
  [[nodiscard]] double subtitle_y() const { return 4 * font_size; }
  [[nodiscard]] double legend_y() const { return has_subtitle ? 6 * font_size : 4 * font_size; }
  /// Base line of the bar that shows details and matches.
  [[nodiscard]] double details_y() const { return height() - bottom_margin() / 2; }
};

}  // namespace pe::picture
