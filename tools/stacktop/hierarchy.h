// Builds the hierarchy of a function's callees or callers, over all places where it is called, as
// an indented tree with cut-offs.
//
// Equal functions with the same parent line are one line.  Lines below the cut-off are not
// expanded, so the cost depends only on the lines shown.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "painting/tree/call_tree.h"
#include "stacktop/neighbours.h"

namespace pe::stacktop {

enum class Direction { kCallees, kCallers };

struct Cutoff {
  double share = 0.005;        ///< of the whole profile; lines with less are left out
  std::uint32_t levels = 128;  ///< below the function itself, 1 or more
};

struct HierarchyLine {
  std::uint32_t name;  ///< name_id()
  std::uint32_t depth;
  painting::Count self, total;  ///< self: 0 among callers
  /// The text drawn before the name: "|  `- ".  The lines of a chain have the same indentation, and
  /// so do very deep branches: it has at most 200 bytes.
  std::string branch;
};

struct Hierarchy {
  std::vector<HierarchyLine> lines;
  std::uint64_t deeper = 0;  ///< lines at the greatest depth that would have lines below
};

/// The first line is for all `tops` together and has the name of the first of them.  Returns no
/// lines if `tops` is empty.  Lines below the same line are sorted, the largest first.  `tops` must
/// be the result of outermost().
Hierarchy hierarchy(const painting::CallTree& tree, const std::vector<painting::NodeId>& tops,
                    Direction direction, const Cutoff& cutoff);

}  // namespace pe::stacktop
