// SPDX-License-Identifier: MIT
#include "calltree/tree_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace pe::calltree {
namespace {

/// Children looked at one by one before the hash map is asked.  Nearly all
/// nodes of real profiles have fewer, and then never touch it.
constexpr int kNearChildren = 8;

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t i = 0;
  constexpr std::size_t kStep = 64;  // memcmp goes by vector registers
  while (i + kStep <= limit && std::memcmp(a.data() + i, b.data() + i, kStep) == 0)
    i += kStep;
  while (i < limit && a[i] == b[i])
    ++i;
  return i;
}

}  // namespace

TreeBuilder::TreeBuilder() {
  nodes_.push_back(
      {.name = name_id(""), .first_child = kRoot, .last_child = kRoot, .next_sibling = kRoot});
  self_.emplace_back();
}

void TreeBuilder::add(std::string_view stack, Count count) {
  stack = stack.substr(0, stack.find_last_not_of(';') + 1);
  keep_common_path(stack);
  std::size_t start = path_.empty() ? 0 : path_.back().end + 1;
  NodeId node = path_.empty() ? kRoot : path_.back().node;
  while (start < stack.size()) {
    const std::size_t end = std::min(stack.find(';', start), stack.size());
    node = child(node, name_id(stack.substr(start, end - start)));
    path_.push_back({.end = end, .node = node});
    start = end + 1;
  }
  if (!self_[node].add(count))
    tree_.saturated_ = true;
}

/// Leaves in path_ the frames that `stack` begins with, and in previous_ all of it.
void TreeBuilder::keep_common_path(std::string_view stack) {
  const std::size_t common = common_prefix(previous_, stack);
  const auto is_shared = [&](const PathStep& step) {
    return step.end < common ||
           (step.end == common && (stack.size() == common || stack[common] == ';'));
  };
  if (stack.empty())
    path_.clear();  // no frame at all, where any other text has at least one
  while (!path_.empty() && !is_shared(path_.back()))
    path_.pop_back();
  previous_.resize(common);
  previous_ += stack.substr(common);
}

std::uint32_t TreeBuilder::name_id(std::string_view name) {
  if (const auto found = name_ids_.find(name); found != name_ids_.end())
    return found->second;
  const auto id = static_cast<std::uint32_t>(tree_.names_.size());
  const std::string_view kept = tree_.texts_.store(name);
  tree_.names_.push_back(kept);
  name_ids_.emplace(kept, id);
  return id;
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
  const auto& names = tree_.names_;
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
void TreeBuilder::emit_in_order() {
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
    const auto first = static_cast<std::ptrdiff_t>(pending.size());
    for (NodeId c = nodes_[node].first_child; c != kRoot; c = nodes_[c].next_sibling)
      pending.push_back({.node = c, .parent = id});
    // Sorted input leaves them in order, and sorting what is reversed is cheap.
    std::reverse(pending.begin() + first, pending.end());
    if (!std::is_sorted(pending.begin() + first, pending.end(), by_name_descending))
      std::sort(pending.begin() + first, pending.end(), by_name_descending);
  }
}

CallTree TreeBuilder::finish() && {
  emit_in_order();
  CallTree tree = std::move(tree_);
  tree.total_ = tree.self_;
  // Children lie behind their parents: backwards, each is complete when its turn comes.
  for (auto node = static_cast<NodeId>(tree.nodes_.size() - 1); node != kRoot; --node) {
    const NodeId parent = tree.nodes_[node].parent;
    CallTree::Node& above = tree.nodes_[parent];
    above.subtree_end = std::max(above.subtree_end, tree.nodes_[node].subtree_end);
    if (!tree.total_[parent].add(tree.total_[node]))
      tree.saturated_ = true;
  }
  return tree;
}

}  // namespace pe::calltree
