// SPDX-License-Identifier: MIT
#include "stacktop/neighbours.h"

namespace pe::stacktop {

using painting::CallTree;
using painting::Count;
using painting::kRoot;
using painting::NodeId;

std::vector<NodeId> outermost(const CallTree& tree, const Members& members) {
  std::vector<NodeId> found;
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot + 1; node < nodes;) {
    const bool is_member = members[tree.name_id(node)];
    if (is_member)
      found.push_back(node);
    node = is_member ? tree.subtree_end(node) : node + 1;
  }
  return found;
}

Neighbours callers(const CallTree& tree, const Members& members) {
  Neighbours sums{.by_name = std::vector<Count>(tree.name_count()), .none = {}};
  for (const NodeId node : outermost(tree, members)) {
    const NodeId caller = tree.parent(node);
    Count& sum = caller == kRoot ? sums.none : sums.by_name[tree.name_id(caller)];
    static_cast<void>(sum.add(tree.total(node)));  // saturated only if CallTree::saturated() is
  }
  return sums;
}

Neighbours callees(const CallTree& tree, const Members& members) {
  Neighbours sums{.by_name = std::vector<Count>(tree.name_count()), .none = {}};
  struct Open {
    NodeId end;
    Count* sum;  // stacks that end before `end` add to it
  };
  std::vector<Open> open;
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot + 1; node < nodes; ++node) {
    while (!open.empty() && open.back().end <= node)
      open.pop_back();
    const NodeId caller = tree.parent(node);
    if (members[tree.name_id(node)])
      open.push_back({.end = tree.subtree_end(node), .sum = &sums.none});
    else if (caller != kRoot && members[tree.name_id(caller)])
      open.push_back({.end = tree.subtree_end(node), .sum = &sums.by_name[tree.name_id(node)]});
    if (!open.empty())
      static_cast<void>(open.back().sum->add(tree.self(node)));
  }
  return sums;
}

}  // namespace pe::stacktop
