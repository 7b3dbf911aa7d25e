// SPDX-License-Identifier: MIT
#include "painting/tree/call_tree.h"

#include <algorithm>

namespace pe::painting {

void CallTree::add_up() {
  total_ = self_;
  // Children follow their parents, so in reverse order each node is complete when it is reached.
  for (auto node = static_cast<NodeId>(nodes_.size() - 1); node != kRoot; --node) {
    const NodeId parent = nodes_[node].parent;
    Node& above = nodes_[parent];
    above.subtree_end = std::max(above.subtree_end, nodes_[node].subtree_end);
    if (!total_[parent].add(total_[node]))
      saturated_ = true;
  }
}

void CallTree::take_differences(std::vector<Count> self_before) {
  std::vector<Count>& before = self_before;  // becomes totals on the way to the root
  delta_.resize(nodes_.size());
  for (auto node = static_cast<NodeId>(nodes_.size() - 1); node != kRoot; --node) {
    delta_[node] = total_[node].minus(before[node]);
    if (!before[nodes_[node].parent].add(before[node]))
      saturated_ = true;
  }
  delta_[kRoot] = total_[kRoot].minus(before[kRoot]);
  scale_differences();
}

void CallTree::scale_differences() {
  largest_delta_ = 0;
  for (std::size_t node = kRoot + 1; node < delta_.size(); ++node)
    if (!std::isnan(delta_[node]))
      largest_delta_ = std::max(largest_delta_, std::abs(delta_[node]));
}

}  // namespace pe::painting
