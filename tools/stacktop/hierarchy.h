// The hierarchy under a function, wherever it is called, or above it: an indented tree with
// cut-offs.
//
// Equal functions called from the same place in it are one line.  What is below the cut-off is
// not looked into, so the cost is that of what is shown.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "picture/tree/call_tree.h"
#include "stacktop/neighbours.h"

namespace pe::stacktop {

enum class Direction { kCallees, kCallers };

struct Cutoff {
  double share = 0.005;        ///< of the whole profile; lines that count less are left out
  std::uint32_t levels = 128;  ///< below the function itself, 1 or more
};

struct HierarchyLine {
  std::uint32_t name;  ///< name_id()
  std::uint32_t depth;
  picture::Count self, total;  ///< self: 0 among callers
  /// What a text draws before the name: "|  `- ".  Lines of a chain stand below each other, and
  /// branches too deep to be shown so do as well: it has at most 200 bytes.
  std::string branch;
};

struct Hierarchy {
  std::vector<HierarchyLine> lines;
  std::uint64_t deeper = 0;  ///< lines at the greatest depth that have others below them
};

/// The first line is for all of `tops` together, with the name of the first.  Empty if
/// there are none.  Lines below one other: the largest first.  `tops` is what outermost() finds.
Hierarchy hierarchy(const picture::CallTree& tree, const std::vector<picture::NodeId>& tops,
                    Direction direction, const Cutoff& cutoff);

}  // namespace pe::stacktop
