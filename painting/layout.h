// Turns a tree into rectangles: decides which nodes are drawn, and where.
//
// A node's own counts lie left of its children, in the order of sorted folded
// text, unless the tree has starts.  Nodes narrower than the minimum are left out
// with all their descendants.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "painting/svg/geometry.h"
#include "painting/tree/call_tree.h"

namespace pe::painting {

/// Frames narrower than this are left out, together with all frames that they call.
struct MinWidth {
  double value = 0.1;
  bool is_percent = false;  ///< of the total; otherwise pixels

  [[nodiscard]] double pixels(const Geometry& geometry) const {
    return is_percent ? value / 100 * geometry.usable_width() : value;
  }
};

struct LayoutRequest {
  double usable_width = 0;  ///< width of the root, in pixels
  MinWidth min_width;
  std::optional<folded::Count> total;  ///< count that the whole width represents, if not the sum
};

struct Box {
  NodeId node;
  std::uint32_t depth;  ///< 0: the root
  folded::Count start;  ///< counts left of it
  folded::Count count;  ///< its width; that of the root may exceed its total
  double left, right;   ///< pixels
};

/// A place in the last row that represents frames left out.
struct Tower {
  double left, right;  ///< pixels
  std::uint32_t rows;  ///< that its frames need beyond the last row
};

struct Layout {
  std::vector<Box> boxes;     ///< depth first, the root first
  std::uint32_t levels = 0;   ///< rows that hold a box
  std::vector<Tower> towers;  ///< from left to right; empty unless cut_towers() made them
  folded::Count whole;        ///< count that the whole width represents
};

/// The tree must have a total above 0.  Boxes of a row never overlap, and each
/// lies within its parent's.
Layout lay_out(const CallTree& tree, const LayoutRequest& request);

/// Leaves at most `levels` rows, 2 or more, so that the root stays.  In the last one, towers
/// replace the boxes that have others on them.  Returns the number of rows left out.
std::uint32_t cut_towers(Layout& layout, std::uint32_t levels);

}  // namespace pe::painting
