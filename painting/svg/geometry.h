// Positions of the elements of the page, in pixels.
//
// The margins depend on the font size as in flamegraph.pl, so that flame graphs
// keep their size when this tool replaces it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::painting {

struct Geometry {
  double width = 1200;
  double frame_height = 18;
  double font_size = 12;
  /// Mean width of a glyph, in font sizes.  Labels are cut by it.
  double font_width = 0.59;
  bool has_subtitle = false;
  bool has_legend = false;
  bool inverted = false;  ///< root at the top
  /// The subtitle overlaps the root's row, as in inverted flame graphs of flamegraph.pl.
  bool subtitle_overlaps = false;
  std::uint32_t levels = 0;  ///< rows of frames

  static constexpr double kSideMargin = 10;

  /// The space above the frames, for the title and up to two lines below it.
  [[nodiscard]] double top_margin() const {
    return (3 + (has_subtitle ? 2 : 0) + (has_legend ? 2 : 0)) * font_size;
  }
  [[nodiscard]] double bottom_margin() const { return 2 * font_size + 10; }
  [[nodiscard]] double height() const {
    return levels * frame_height + top_margin() + bottom_margin();
  }
  /// Width of the root's frame.
  [[nodiscard]] double usable_width() const { return width - 2 * kSideMargin; }
  /// Top edge of the frames at `depth`; the root has depth 0.
  [[nodiscard]] double frame_y(std::uint32_t depth) const {
    if (!inverted)  // leaves a pixel between rows
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

}  // namespace pe::painting
