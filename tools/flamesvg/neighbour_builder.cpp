// SPDX-License-Identifier: MIT
#include "flamesvg/neighbour_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace pe::painting {
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

void NeighbourBuilder::add(std::string_view stack, Count count, std::optional<Count> before) {
  const std::size_t first_new = tree_.nodes_.size();
  const NodeId node = path_.follow(
      stack, [this](NodeId parent, std::string_view frame) { return append(parent, frame); });
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
