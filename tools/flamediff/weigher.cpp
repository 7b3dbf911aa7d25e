// SPDX-License-Identifier: MIT
#include "flamediff/weigher.h"

#include <algorithm>
#include <cstdint>

namespace pe::painting {
namespace {

/// Returns for each node of `shape` whether its total is above 0.
std::vector<bool> has_total(const CallTree& shape, const std::vector<Count>& self) {
  std::vector<bool> has(shape.size());
  for (auto node = static_cast<NodeId>(shape.size()); node-- > 0;) {
    has[node] = has[node] || !self[node].is_zero();
    if (has[node])
      has[shape.parent(node)] = true;
  }
  return has;
}

}  // namespace

/// Appends the nodes that have counts.  The root of `shape` becomes `onto`, which exists already.
void Weigher::copy(const CallTree& shape, const std::vector<Count>& self, NodeId onto,
                   WeighedTree& to) {
  const std::vector<bool> has = has_total(shape, self);
  std::vector<NodeId> copies(shape.size());
  copies[kRoot] = onto;
  const auto nodes = static_cast<NodeId>(shape.size());
  for (NodeId node = kRoot + 1; node < nodes;) {
    if (!has[node]) {
      node = shape.subtree_end(node);
      continue;
    }
    const auto id = static_cast<NodeId>(to.tree.nodes_.size());
    copies[node] = id;
    to.tree.nodes_.push_back({.name = shape.nodes_[node].name,
                              .parent = copies[shape.parent(node)],
                              .subtree_end = id + 1});
    to.tree.self_.push_back(self[node]);
    to.origin.push_back(node);
    ++node;
  }
}

WeighedTree Weigher::weigh(const CallTree& shape, const Weights& weights) {
  WeighedTree to;
  to.tree.nodes_.reserve(shape.size());
  to.tree.self_.reserve(shape.size());
  to.origin.reserve(shape.size());
  to.tree.names_ = shape.names_;
  to.tree.saturated_ = shape.saturated_;
  to.tree.nodes_.push_back({.name = shape.nodes_[kRoot].name, .parent = kRoot, .subtree_end = 1});
  to.tree.self_.push_back(weights.self[kRoot]);
  to.origin.push_back(kRoot);
  copy(shape, weights.self, kRoot, to);
  const bool has_aside = std::any_of(weights.aside.begin(), weights.aside.end(),
                                     [](Count count) { return !count.is_zero(); });
  if (has_aside) {
    to.aside = static_cast<NodeId>(to.tree.nodes_.size());
    const auto name = static_cast<std::uint32_t>(to.tree.names_.size());
    to.tree.names_.push_back(to.tree.texts_.store(weights.aside_name));
    to.tree.nodes_.push_back({.name = name, .parent = kRoot, .subtree_end = to.aside + 1});
    to.tree.self_.push_back(weights.aside[kRoot]);
    to.origin.push_back(kRoot);
    copy(shape, weights.aside, to.aside, to);
  }
  to.tree.add_up();
  return to;
}

}  // namespace pe::painting
