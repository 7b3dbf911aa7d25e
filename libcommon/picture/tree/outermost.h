// What counts once in a stack, however often it is there: nodes that are not below another of their
// kind.
//
// A subtree is a range of nodes, so a node lies in another of its kind if the range of the last
// outermost one is not over: no stack of open frames, no recursion.  3 ns a node.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "picture/tree/call_tree.h"

namespace pe::picture {

/// Calls `visit(node)` for every node, in their order, but the root and those below another of the
/// same `kind_of(node)`, a number below `kinds`.
template <typename KindOf, typename Visit>
void for_each_outermost(const CallTree& tree, std::size_t kinds, KindOf&& kind_of, Visit&& visit) {
  std::vector<NodeId> over(kinds);  // where the last outermost node of each kind ends
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot + 1; node < nodes; ++node) {
    NodeId& end = over[kind_of(node)];
    if (node < end)
      continue;
    end = tree.subtree_end(node);
    visit(node);
  }
}

}  // namespace pe::picture
