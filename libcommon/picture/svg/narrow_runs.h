// Frames too narrow to be told apart, drawn as a few paths: a run of neighbours
// that together fill a pixel becomes one rectangle, in the colour of its widest.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "picture/svg/colors.h"
#include "picture/svg/geometry.h"

namespace pe::picture {

class NarrowRuns {
 public:
  struct Frame {
    std::uint32_t depth = 0;
    double left = 0, right = 0;  ///< pixels
    Rgb fill{};
  };

  /// Frames of one depth come from left to right.
  void add(const Frame& frame, const Geometry& geometry);
  /// Appends one <path> a colour, and forgets all frames.  Colours are rounded
  /// to a few dozen.
  void append_paths(std::string& out, const Geometry& geometry);

 private:
  struct Run {
    double left = 0, right = 0;  ///< equal: no run
    double widest = 0;
    Rgb fill{};
  };
  void close(std::uint32_t depth, const Geometry& geometry);

  std::vector<Run> open_;  ///< by depth
  std::map<std::uint32_t, std::string> paths_;
};

/// Pixels as the page has them, in tenths: neighbours meet exactly, because a
/// width is the difference of two rounded edges.
long long tenths(double pixels);
/// 123 becomes "12.3".
void append_tenths(std::string& out, long long value);

}  // namespace pe::picture
