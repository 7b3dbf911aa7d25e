// SPDX-License-Identifier: MIT
#include "painting/tree/tree_builder.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace pe::painting {
namespace {

/// Number of children that are compared one by one before the hash map is searched.  Nearly all
/// nodes of real profiles have fewer and never need the map.
constexpr int kNearChildren = 8;

}  // namespace

TreeBuilder::TreeBuilder(Rename rename) : rename_(std::move(rename)) {
  nodes_.push_back({.name = names_.find_or_add(""),
                    .text = 0,
                    .first_child = kRoot,
                    .last_child = kRoot,
                    .next_sibling = kRoot,
                    .found = kRoot});
  self_.emplace_back();
}

TreeBuilder::Text TreeBuilder::text_of(std::string_view frame) {
  if (!rename_) {
    const std::uint32_t name = names_.find_or_add(frame);
    return {.text = name, .name = name};
  }
  const std::uint32_t text = texts_.find_or_add(frame);
  if (text == named_.size())  // a new one
    named_.push_back(names_.find_or_add(rename_(frame)));
  return {.text = text, .name = named_[text]};
}

NodeId TreeBuilder::find_or_add(std::string_view stack) {
  stack = without_empty_end(stack);
  if (stack.empty())
    return kRoot;
  const auto nodes = path_.follow(stack, [this](auto above, std::string_view frame) {
    const NodeId parent = above.empty() ? kRoot : above.back();
    return is_first_ ? child(parent, text_of(frame)) : next_child(parent, frame);
  });
  return nodes.back();
}

/// Returns the child of this text.  In sorted profiles of one program it mostly follows the child
/// found before, and comparing two texts costs less than a look-up.
NodeId TreeBuilder::next_child(NodeId parent, std::string_view frame) {
  const NodeId before = nodes_[parent].found;
  NodeId next = before == kRoot ? kRoot : nodes_[before].next_sibling;
  if (next == kRoot)
    next = nodes_[parent].first_child;
  const auto& texts = (rename_ ? texts_ : names_).names();
  if (next == kRoot || texts[nodes_[next].text] != frame)
    next = child(parent, text_of(frame));
  nodes_[parent].found = next;
  return next;
}

NodeId TreeBuilder::add(std::string_view stack, Count count, std::optional<Count> before) {
  const NodeId node = find_or_add(stack);
  if (!self_[node].add(count))
    tree_.saturated_ = true;
  if (before)
    add_to_other(0, node, *before);
  return node;
}

void TreeBuilder::add_to(std::size_t profile, std::string_view stack, Count count) {
  is_first_ = profile == 0;
  const NodeId node = find_or_add(stack);
  if (profile > 0)
    add_to_other(profile - 1, node, count);
  else if (!self_[node].add(count))
    tree_.saturated_ = true;
}

void TreeBuilder::add_to_other(std::size_t index, NodeId node, Count count) {
  if (others_.size() <= index)
    others_.resize(index + 1);
  std::vector<Count>& self = others_[index];
  if (self.size() <= node)
    self.resize(node + std::size_t{1});
  if (!self[node].add(count))
    tree_.saturated_ = true;
}

NodeId TreeBuilder::child(NodeId parent, Text frame) {
  const std::uint32_t name = frame.name;
  const NodeId last = nodes_[parent].last_child;
  if (last != kRoot && nodes_[last].name == name)
    return last;
  NodeId near = nodes_[parent].first_child;
  for (int i = 0; i < kNearChildren; ++i) {
    if (near == kRoot)
      return append_child(parent, frame);
    if (nodes_[near].name == name)
      return near;
    near = nodes_[near].next_sibling;
  }
  const auto [far, is_new] = far_children_.try_emplace(std::uint64_t{parent} << 32U | name, kRoot);
  if (is_new)
    far->second = append_child(parent, frame);
  return far->second;
}

NodeId TreeBuilder::append_child(NodeId parent, Text frame) {
  if (nodes_.size() >= std::numeric_limits<NodeId>::max())
    throw Error("call tree: more than 4294967295 frames");
  const auto node = static_cast<NodeId>(nodes_.size());
  nodes_.push_back({.name = frame.name,
                    .text = frame.text,
                    .first_child = kRoot,
                    .last_child = kRoot,
                    .next_sibling = kRoot,
                    .found = kRoot});
  self_.emplace_back();
  Node& above = nodes_[parent];
  (above.first_child == kRoot ? above.first_child : nodes_[above.last_child].next_sibling) = node;
  above.last_child = node;
  return node;
}

/// Returns the place of each name in bytewise order.
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

/// Fills the tree's nodes, depth first.  finish() sets subtree_end and totals.
/// Returns the builder's number of each node.
std::vector<NodeId> TreeBuilder::emit_in_order() {
  std::vector<NodeId> order;
  order.reserve(nodes_.size());
  tree_.nodes_.reserve(nodes_.size());
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
    order.push_back(node);
    const auto first = static_cast<std::ptrdiff_t>(pending.size());
    for (NodeId c = nodes_[node].first_child; c != kRoot; c = nodes_[c].next_sibling)
      pending.push_back({.node = c, .parent = id});
    // Sorted input leaves the children in order, so they need no sort once reversed.
    std::reverse(pending.begin() + first, pending.end());
    if (!std::is_sorted(pending.begin() + first, pending.end(), by_name_descending))
      std::sort(pending.begin() + first, pending.end(), by_name_descending);
  }
  return order;
}

std::vector<Count> TreeBuilder::in_order(std::vector<Count> counts,
                                         const std::vector<NodeId>& order) const {
  counts.resize(nodes_.size());
  std::vector<Count> ordered;
  ordered.reserve(order.size());
  for (const NodeId node : order)
    ordered.push_back(counts[node]);
  return ordered;
}

CallTree TreeBuilder::finish() && { return finish_in(emit_in_order()); }

CallTree TreeBuilder::finish(std::vector<NodeId>& nodes) && {
  const std::vector<NodeId> order = emit_in_order();
  nodes.resize(order.size());
  for (NodeId node = kRoot; node < order.size(); ++node)
    nodes[order[node]] = node;
  return finish_in(order);
}

CallTree TreeBuilder::finish_in(const std::vector<NodeId>& order) {
  tree_.self_ = in_order(std::move(self_), order);
  CallTree tree = std::move(tree_);
  std::move(names_).move_to(tree.texts_, tree.names_);
  tree.add_up();
  if (!others_.empty())
    tree.take_differences(in_order(std::move(others_[0]), order));
  return tree;
}

ProfileUnion TreeBuilder::finish_union(std::size_t profiles) && {
  const std::vector<NodeId> order = emit_in_order();
  ProfileUnion all{.tree = std::move(tree_), .profiles = {}};
  CallTree& tree = all.tree;
  std::move(names_).move_to(tree.texts_, tree.names_);
  others_.resize(profiles);
  std::swap(others_.back(), self_);  // the loop ends with profile 0, whose counts stay in the tree
  std::rotate(others_.begin(), others_.end() - 1, others_.end());
  all.profiles.resize(profiles);
  for (std::size_t i = profiles; i-- > 0;) {
    tree.self_ = in_order(std::move(others_[i]), order);
    tree.add_up();
    if (i > 0)
      all.profiles[i] = {.self = std::move(tree.self_), .total = std::move(tree.total_)};
    else
      all.profiles[i] = {.self = tree.self_, .total = tree.total_};
  }
  return all;
}

}  // namespace pe::painting
