// SPDX-License-Identifier: MIT
#include "calltree/tree_builder.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace pe::calltree {
namespace {

/// Children looked at one by one before the hash map is asked.  Nearly all
/// nodes of real profiles have fewer, and then never touch it.
constexpr int kNearChildren = 8;

}  // namespace

TreeBuilder::TreeBuilder() {
  nodes_.push_back({.name = names_.find_or_add(""),
                    .first_child = kRoot,
                    .last_child = kRoot,
                    .next_sibling = kRoot});
  self_.emplace_back();
}

void TreeBuilder::add(std::string_view stack, Count count, std::optional<Count> before) {
  stack = without_empty_end(stack);
  path_.keep_common(stack);
  NodeId node = path_.node();
  for (std::size_t start = path_.next_frame(); start < stack.size();) {
    const std::size_t end = std::min(stack.find(';', start), stack.size());
    node = child(node, names_.find_or_add(stack.substr(start, end - start)));
    path_.push(end, node);
    start = end + 1;
  }
  if (!self_[node].add(count))
    tree_.saturated_ = true;
  if (before) {
    if (self_before_.size() <= node)
      self_before_.resize(node + std::size_t{1});
    if (!self_before_[node].add(*before))
      tree_.saturated_ = true;
  }
}

NodeId TreeBuilder::child(NodeId parent, std::uint32_t name) {
  const NodeId last = nodes_[parent].last_child;
  if (last != kRoot && nodes_[last].name == name)
    return last;
  NodeId near = nodes_[parent].first_child;
  for (int i = 0; i < kNearChildren; ++i) {
    if (near == kRoot)
      return append_child(parent, name);
    if (nodes_[near].name == name)
      return near;
    near = nodes_[near].next_sibling;
  }
  const auto [far, is_new] = far_children_.try_emplace(std::uint64_t{parent} << 32U | name, kRoot);
  if (is_new)
    far->second = append_child(parent, name);
  return far->second;
}

NodeId TreeBuilder::append_child(NodeId parent, std::uint32_t name) {
  if (nodes_.size() >= std::numeric_limits<NodeId>::max())
    throw Error("call tree: more than 4294967295 frames");
  const auto node = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(
      {.name = name, .first_child = kRoot, .last_child = kRoot, .next_sibling = kRoot});
  self_.emplace_back();
  Node& above = nodes_[parent];
  (above.first_child == kRoot ? above.first_child : nodes_[above.last_child].next_sibling) = node;
  above.last_child = node;
  return node;
}

/// For each name, its place in bytewise order.
std::vector<std::uint32_t> TreeBuilder::name_ranks() const {
  const auto& names = names_.names();
  std::vector<std::uint32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return names[a] < names[b]; });
  std::vector<std::uint32_t> ranks(names.size());
  for (std::uint32_t rank = 0; rank < order.size(); ++rank)
    ranks[order[rank]] = rank;
  return ranks;
}

/// Fills the tree's nodes, depth first; subtree_end and totals are left to finish().
/// Returns self_before_ in the same order.
std::vector<Count> TreeBuilder::emit_in_order() {
  const bool is_differential = !self_before_.empty();
  std::vector<Count> before;
  before.reserve(is_differential ? nodes_.size() : 0);
  self_before_.resize(is_differential ? nodes_.size() : 0);
  tree_.nodes_.reserve(nodes_.size());
  tree_.self_.reserve(nodes_.size());
  const std::vector<std::uint32_t> ranks = name_ranks();
  struct Pending {
    NodeId node;    // in the builder
    NodeId parent;  // in the tree
  };
  const auto by_name_descending = [&](const Pending& a, const Pending& b) {
    return ranks[nodes_[a.node].name] > ranks[nodes_[b.node].name];
  };
  std::vector<Pending> pending{{.node = kRoot, .parent = kRoot}};
  while (!pending.empty()) {
    const auto [node, parent] = pending.back();
    pending.pop_back();
    const auto id = static_cast<NodeId>(tree_.nodes_.size());
    tree_.nodes_.push_back({.name = nodes_[node].name, .parent = parent, .subtree_end = id + 1});
    tree_.self_.push_back(self_[node]);
    if (is_differential)
      before.push_back(self_before_[node]);
    const auto first = static_cast<std::ptrdiff_t>(pending.size());
    for (NodeId c = nodes_[node].first_child; c != kRoot; c = nodes_[c].next_sibling)
      pending.push_back({.node = c, .parent = id});
    // Sorted input leaves them in order, and sorting what is reversed is cheap.
    std::reverse(pending.begin() + first, pending.end());
    if (!std::is_sorted(pending.begin() + first, pending.end(), by_name_descending))
      std::sort(pending.begin() + first, pending.end(), by_name_descending);
  }
  return before;
}

CallTree TreeBuilder::finish() && {
  std::vector<Count> self_before = emit_in_order();
  CallTree tree = std::move(tree_);
  std::move(names_).move_to(tree.texts_, tree.names_);
  tree.add_up();
  if (!self_before.empty())
    tree.take_differences(std::move(self_before));
  return tree;
}

}  // namespace pe::calltree
