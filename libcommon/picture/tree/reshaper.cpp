// SPDX-License-Identifier: MIT
#include "picture/tree/reshaper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/plural.h"

namespace pe::picture {

/// Moves names and flags out of `tree` into a new tree, and reserves room for its nodes.
CallTree Reshaper::empty_like(CallTree& tree) {
  CallTree shaped;
  shaped.texts_ = std::move(tree.texts_);
  shaped.names_ = std::move(tree.names_);
  shaped.saturated_ = tree.saturated_;
  shaped.nodes_.reserve(tree.size());
  shaped.self_.reserve(tree.size());
  shaped.delta_.reserve(tree.delta_.size());
  return shaped;
}

/// Appends `node` of `from` to `to`, below `parent` there.
void Reshaper::copy(const CallTree& from, NodeId node, NodeId parent, CallTree& to) {
  const auto id = static_cast<NodeId>(to.nodes_.size());
  to.nodes_.push_back({.name = from.nodes_[node].name, .parent = parent, .subtree_end = id + 1});
  to.self_.push_back(from.self_[node]);
  if (from.is_differential())
    to.delta_.push_back(from.delta_[node]);
}

CallTree Reshaper::by_width(CallTree tree) {
  CallTree shaped = empty_like(tree);
  struct Pending {
    NodeId node;    // in `tree`
    NodeId parent;  // in `shaped`
  };
  std::vector<Pending> pending{{.node = kRoot, .parent = kRoot}};
  while (!pending.empty()) {
    const auto [node, parent] = pending.back();
    pending.pop_back();
    const auto id = static_cast<NodeId>(shaped.nodes_.size());
    copy(tree, node, parent, shaped);
    const auto first = static_cast<std::ptrdiff_t>(pending.size());
    for (NodeId c = node + 1; c < tree.subtree_end(node); c = tree.subtree_end(c))
      pending.push_back({.node = c, .parent = id});
    std::reverse(pending.begin() + first, pending.end());
    std::stable_sort(pending.begin() + first, pending.end(), [&](const auto& a, const auto& b) {
      return tree.total_[a.node] < tree.total_[b.node];
    });
  }
  shaped.add_up();
  shaped.scale_differences();
  return shaped;
}

/// Appends all callees of `node` as one frame on the last node of `to`.
void Reshaper::append_folded(CallTree& from, NodeId node, CallTree& to) {
  const NodeId end = from.subtree_end(node);
  if (end == node + 1)
    return;
  Count count;
  double delta = 0;
  for (NodeId c = node + 1; c < end; c = from.subtree_end(c)) {
    to.saturated_ = !count.add(from.total_[c]) || to.saturated_;
    delta += from.delta(c).value_or(0);
  }
  const auto name = static_cast<std::uint32_t>(to.names_.size());
  to.names_.push_back(to.texts_.store(fmt::format("[{}]", plural(end - node - 1, "deeper frame"))));
  const auto id = static_cast<NodeId>(to.nodes_.size());
  to.nodes_.push_back({.name = name, .parent = id - 1, .subtree_end = id + 1});
  to.self_.push_back(count);
  if (from.has_starts())
    to.starts_.push_back(from.start(node + 1));
  if (from.is_differential())
    to.delta_.push_back(delta);
}

CallTree Reshaper::limited(CallTree tree, std::uint32_t levels) {
  CallTree shaped = empty_like(tree);
  struct Open {
    NodeId end;  // in `tree`
    NodeId id;   // in `shaped`
  };
  std::vector<Open> open;
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot; node < nodes;) {
    while (!open.empty() && open.back().end <= node)
      open.pop_back();
    const auto id = static_cast<NodeId>(shaped.nodes_.size());
    copy(tree, node, open.empty() ? kRoot : open.back().id, shaped);
    if (tree.has_starts())
      shaped.starts_.push_back(tree.start(node));
    if (open.size() < levels) {
      open.push_back({.end = tree.subtree_end(node), .id = id});
      ++node;
    } else {
      append_folded(tree, node, shaped);
      node = tree.subtree_end(node);
    }
  }
  shaped.add_up();
  shaped.scale_differences();
  return shaped;
}

}  // namespace pe::picture
