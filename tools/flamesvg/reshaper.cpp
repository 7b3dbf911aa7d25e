// SPDX-License-Identifier: MIT
#include "flamesvg/reshaper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace pe::painting {

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
  if (!from.repeats_.empty())
    to.repeats_.push_back(from.repeats_[node]);
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

/// Fills in the last node of `to`, which represents `members`, nodes of one name, and what they
/// call by direct recursion.  Returns the nodes that these call otherwise.
std::vector<NodeId> Reshaper::merge(const CallTree& tree, std::vector<Member> members,
                                    CallTree& to) {
  std::vector<NodeId> callees;
  double delta = 0;
  if (tree.is_differential())
    for (const Member& head : members)  // its change includes that of its callees
      delta += tree.delta_[head.node];
  Count self;
  std::uint32_t repeats = 1;
  for (std::size_t i = 0; i < members.size(); ++i) {  // which grows
    const Member member = members[i];
    to.saturated_ = !self.add(tree.self_[member.node]) || to.saturated_;
    repeats = std::max(repeats, member.repeats);
    for (NodeId c = member.node + 1; c < tree.subtree_end(member.node); c = tree.subtree_end(c))
      if (member.node != kRoot && tree.name_id(c) == tree.name_id(member.node))
        members.push_back({.node = c, .repeats = member.repeats + 1});
      else
        callees.push_back(c);
  }
  to.self_.push_back(self);
  to.repeats_.push_back(repeats);
  if (tree.is_differential())
    to.delta_.push_back(delta);
  return callees;
}

CallTree Reshaper::without_recursion(CallTree tree) {
  CallTree shaped = empty_like(tree);
  struct Pending {
    std::vector<Member> heads;  // of one name
    NodeId parent;              // in `shaped`
  };
  std::vector<Pending> pending;
  pending.push_back({.heads = {{.node = kRoot, .repeats = 1}}, .parent = kRoot});
  while (!pending.empty()) {
    const auto [heads, parent] = std::move(pending.back());
    pending.pop_back();
    const auto id = static_cast<NodeId>(shaped.nodes_.size());
    shaped.nodes_.push_back(
        {.name = tree.name_id(heads[0].node), .parent = parent, .subtree_end = id + 1});
    std::vector<NodeId> callees = merge(tree, heads, shaped);
    // The last name first, because the last pending node is the next.
    std::ranges::stable_sort(callees, [&](NodeId a, NodeId b) {
      return shaped.names_[tree.name_id(a)] > shaped.names_[tree.name_id(b)];
    });
    for (std::size_t i = 0; i < callees.size(); ++i) {
      if (i == 0 || tree.name_id(callees[i]) != tree.name_id(callees[i - 1]))
        pending.push_back({.heads = {}, .parent = id});
      pending.back().heads.push_back({.node = callees[i], .repeats = 1});
    }
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
  if (!from.repeats_.empty())
    to.repeats_.push_back(1);
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

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

NeighbourBuilder::NeighbourBuilder(Differences differences) : differences_(differences) {
  append(kRoot, "");
}

NodeId NeighbourBuilder::append(NodeId parent, std::string_view name) {
  if (tree_.nodes_.size() >= std::numeric_limits<NodeId>::max())
    throw Error("call tree: more than 4294967295 frames");
  const auto node = static_cast<NodeId>(tree_.nodes_.size());
  tree_.nodes_.push_back(
      {.name = names_.find_or_add(name), .parent = parent, .subtree_end = node + 1});
  tree_.self_.emplace_back();
  tree_.starts_.push_back(position_);
  return node;
}

/// Returns the node of the last frame; kRoot if there is none.
NodeId NeighbourBuilder::follow(std::string_view stack) {
  if (stack.empty()) {
    path_.clear();
    return kRoot;
  }
  const auto nodes = path_.follow(stack, [this](auto above, std::string_view frame) {
    return append(above.empty() ? kRoot : above.back(), frame);
  });
  return nodes.back();
}

void NeighbourBuilder::add(std::string_view stack, Count count, std::optional<Count> before) {
  const std::size_t first_new = tree_.nodes_.size();
  const NodeId node = follow(without_empty_end(stack));
  if (!tree_.self_[node].add(count) || !position_.add(count))
    tree_.saturated_ = true;
  take_before(node, first_new, count, before);
}

void NeighbourBuilder::take_before(NodeId leaf, std::size_t first_new, Count count,
                                   std::optional<Count> before) {
  if (differences_ == Differences::kInclusive) {
    if (!before)
      return;
    self_before_.resize(std::max(self_before_.size(), leaf + std::size_t{1}));
    tree_.saturated_ = !self_before_[leaf].add(*before) || tree_.saturated_;
    return;
  }
  const bool opens_root = !std::exchange(is_root_open_, true);
  std::vector<double>& delta = tree_.delta_;
  if (before)
    tree_.largest_delta_ = std::max(tree_.largest_delta_, std::abs(count.minus(*before)));
  if (delta.empty() && !before)
    return;
  delta.resize(first_new, kUnknown);  // nodes of earlier lines with one count
  delta.resize(tree_.nodes_.size(), before ? 0 : kUnknown);
  if (before && opens_root)
    delta[kRoot] = 0;
  if (before && (opens_root || first_new < tree_.nodes_.size()))
    delta[leaf] = count.minus(*before);
}

CallTree NeighbourBuilder::finish() && {
  CallTree tree = std::move(tree_);
  std::move(names_).move_to(tree.texts_, tree.names_);
  tree.add_up();
  if (!tree.delta_.empty())
    tree.delta_.resize(tree.nodes_.size(), kUnknown);
  if (!self_before_.empty()) {
    self_before_.resize(tree.nodes_.size());
    tree.take_differences(std::move(self_before_));
  }
  return tree;
}

}  // namespace pe::painting
