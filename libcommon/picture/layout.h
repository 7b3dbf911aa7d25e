// From tree to rectangles: which nodes are drawn, and where.
//
// A node's own counts lie left of its children, in the order of sorted folded
// text, unless the tree says where frames start.  What is narrower than the minimum is left out
// with all below it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "picture/svg/geometry.h"
#include "picture/tree/call_tree.h"

namespace pe::picture {

/// Frames narrower than this are left out, and so is what is above them.
struct MinWidth {
  double value = 0.1;
  bool is_percent = false;  ///< of the total; otherwise pixels

  [[nodiscard]] double pixels(const Geometry& geometry) const {
    return is_percent ? value / 100 * geometry.usable_width() : value;
  }
};

struct LayoutRequest {
  double usable_width = 0;  ///< pixels, of the root
  MinWidth min_width;
  std::optional<folded::Count> total;  ///< what the whole width stands for, if not the sum
  bool has_empty = false;              ///< frames of no width are drawn, if none is too narrow
};

struct Box {
  NodeId node;
  std::uint32_t depth;  ///< 0: the root
  folded::Count start;  ///< counts left of it
  folded::Count count;  ///< what it is wide; for the root perhaps more than its total
  double left, right;   ///< pixels
};

struct Layout {
  std::vector<Box> boxes;    ///< depth first, the root first
  std::uint32_t levels = 0;  ///< rows that hold a box
};

/// The tree must have a total above 0.  Boxes of a row never overlap, and each
/// lies within its parent's.
Layout lay_out(const CallTree& tree, const LayoutRequest& request);

}  // namespace pe::picture
