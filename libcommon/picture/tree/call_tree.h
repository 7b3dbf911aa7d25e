// The tree that folded stacks describe: every frame once below its caller,
// with the counts that ended in it and those that passed through it.
//
// Nodes lie in depth-first order, so a subtree is a range: the children of `n`
// begin at n + 1, the next sibling of `n` is subtree_end(n), and walking the
// tree is a loop over indices.  No function here recurses; stacks may be
// 100,000 frames deep.  44 bytes a node, 52 with differences.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/string_arena.h"
#include "folded/count.h"

namespace pe::picture {

using folded::Count;

/// Index of a node; a parent's is below its children's.
using NodeId = std::uint32_t;
/// The node above all stacks.  It has no name and is its own parent.
inline constexpr NodeId kRoot = 0;

/// Made by TreeBuilder or NeighbourBuilder, changed by Reshaper.
class CallTree {
 public:
  /// How many nodes, the root included; never 0.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  /// Bytes as they came, marks such as "_[k]" included.  Lives as long as *this.
  [[nodiscard]] std::string_view name(NodeId node) const { return names_[nodes_[node].name]; }
  /// Number of the node's name, below name_count(); equal names have equal numbers.
  [[nodiscard]] std::uint32_t name_id(NodeId node) const { return nodes_[node].name; }
  [[nodiscard]] std::size_t name_count() const noexcept { return names_.size(); }
  /// The name that has this number.
  [[nodiscard]] std::string_view name_text(std::uint32_t name_id) const { return names_[name_id]; }
  [[nodiscard]] NodeId parent(NodeId node) const { return nodes_[node].parent; }
  /// One past the last descendant of `node`.
  [[nodiscard]] NodeId subtree_end(NodeId node) const { return nodes_[node].subtree_end; }
  /// Counts of the stacks that end here.
  [[nodiscard]] Count self(NodeId node) const { return self_[node]; }
  /// By node: self() and total().
  [[nodiscard]] std::span<const Count> selves() const noexcept { return self_; }
  [[nodiscard]] std::span<const Count> totals() const noexcept { return total_; }
  /// self() of the node and all its descendants; Count::max() if that does not fit.
  [[nodiscard]] Count total(NodeId node) const { return total_[node]; }
  /// Were the stacks counted in two profiles?
  [[nodiscard]] bool is_differential() const noexcept { return !delta_.empty(); }
  /// How much the node grew from the first profile to the second, in counts of the
  /// second's scale; nullopt where only one is known.  Builders say what it includes.
  [[nodiscard]] std::optional<double> delta(NodeId node) const {
    if (delta_.empty() || std::isnan(delta_[node]))
      return std::nullopt;
    return delta_[node];
  }
  /// The largest |delta()|, by which colours are scaled; 0 if nothing changed.
  [[nodiscard]] double largest_delta() const noexcept { return largest_delta_; }
  /// Do frames have places of their own, between which their callers' own counts may
  /// lie?  If not, a frame's own counts lie left of its first child.
  [[nodiscard]] bool has_starts() const noexcept { return !starts_.empty(); }
  /// Counts that lie left of the node; only if has_starts().
  [[nodiscard]] Count start(NodeId node) const { return starts_[node]; }
  /// Did some sum not fit?  If so, the children's totals may exceed the parent's.
  [[nodiscard]] bool saturated() const noexcept { return saturated_; }

 private:
  friend class TreeBuilder;
  friend class NeighbourBuilder;
  friend class Reshaper;
  friend class Weigher;
  struct Node {
    std::uint32_t name;  ///< index into names_
    NodeId parent;
    NodeId subtree_end;
  };

  /// subtree_end() and total() from parent(), self() and each node's own number.
  void add_up();
  /// delta() of each node with all below it; `self_before` is self() in the first profile.
  void take_differences(std::vector<Count> self_before);
  void scale_differences();

  StringArena texts_;
  std::vector<std::string_view> names_;  ///< each once, views into texts_
  std::vector<Node> nodes_;
  // Columns of their own: a profile to compare with adds another.
  std::vector<Count> self_, total_;
  std::vector<Count> starts_;  ///< empty, or one a node
  std::vector<double> delta_;  ///< empty, or one a node, NaN: not known
  double largest_delta_ = 0;
  bool saturated_ = false;
};

}  // namespace pe::picture
