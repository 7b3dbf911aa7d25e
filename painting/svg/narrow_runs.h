// Draws frames that are too narrow to distinguish as a few paths.  A run of neighbours that
// together fill a pixel becomes one rectangle, in the colour of the widest.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "painting/svg/colors.h"
#include "painting/svg/geometry.h"

namespace pe::painting {

class NarrowRuns {
 public:
  struct Frame {
    std::uint32_t depth = 0;
    double left = 0, right = 0;  ///< pixels
    Rgb fill{};
  };

  /// Frames of one depth must be added from left to right.
  void add(const Frame& frame, const Geometry& geometry);
  /// Appends one <path> for each colour and removes all frames.  Rounds the
  /// colours to a few dozen.
  void append_paths(std::string& out, const Geometry& geometry);

 private:
  struct Run {
    double left = 0, right = 0;  ///< equal if there is no run
    double widest = 0;
    Rgb fill{};
  };
  void close(std::uint32_t depth, const Geometry& geometry);

  std::vector<Run> open_;  ///< by depth
  std::map<std::uint32_t, std::string> paths_;
};

/// Rounds to tenths of a pixel, the unit of the page.  Neighbours meet exactly, because a
/// width is the difference of two rounded edges.
long long tenths(double pixels);
/// Appends 123 as "12.3".
void append_tenths(std::string& out, long long value);

}  // namespace pe::painting
