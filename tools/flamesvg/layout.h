// From tree to rectangles: which nodes are drawn, and where.
//
// A node's own counts lie left of its children, in the order of sorted folded
// text, unless the tree says where frames start.  What is narrower than the minimum is left out
// with all below it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "calltree/call_tree.h"
#include "flamesvg/options.h"

namespace pe::flamesvg {

struct Box {
  calltree::NodeId node;
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
Layout lay_out(const calltree::CallTree& tree, const Options& options);

}  // namespace pe::flamesvg
