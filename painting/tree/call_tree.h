// The tree that folded stacks describe: each frame is once below its caller, with the counts
// of stacks that end in it and of stacks that pass through it.
//
// Nodes are in depth-first order, so a subtree is a range: the children of `n`
// start at n + 1, the next sibling of `n` is subtree_end(n), and walking the
// tree is a loop over indices.  No function here recurses, because stacks may be
// 100,000 frames deep.  A node takes 44 bytes, 52 with differences.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_bytes.h"
#include "base/string_arena.h"
#include "folded/count.h"

namespace pe::painting {

using folded::Count;

/// Index of a node; parents have lower indices than their children.
using NodeId = std::uint32_t;
/// The node above all stacks.  It has no name and is its own parent.
inline constexpr NodeId kRoot = 0;

/// TreeBuilder and NeighbourBuilder build it; Reshaper and Weigher derive others from it.
class CallTree {
 public:
  /// Number of nodes, the root included; never 0.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  /// Bytes as read, marks such as "_[k]" included.  Valid as long as *this.
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
  /// self() and total() of all nodes.
  [[nodiscard]] std::span<const Count> selves() const noexcept { return self_; }
  [[nodiscard]] std::span<const Count> totals() const noexcept { return total_; }
  /// self() of the node and all its descendants; Count::max() if that does not fit.
  [[nodiscard]] Count total(NodeId node) const { return total_[node]; }
  /// True if the stacks were counted in two profiles.
  [[nodiscard]] bool is_differential() const noexcept { return !delta_.empty(); }
  /// How much the node grew from the first profile to the second, in counts of the
  /// second's scale; nullopt if only one count is known.  Each builder defines what it includes.
  [[nodiscard]] std::optional<double> delta(NodeId node) const {
    if (delta_.empty() || std::isnan(delta_[node]))
      return std::nullopt;
    return delta_[node];
  }
  /// The largest |delta()| below the root, to scale colours by; 0 if nothing changed.
  [[nodiscard]] double largest_delta() const noexcept { return largest_delta_; }
  /// True if each frame has its own start, so that own counts of callers may lie between
  /// frames.  Otherwise a frame's own counts lie left of its first child.
  [[nodiscard]] bool has_starts() const noexcept { return !starts_.empty(); }
  /// How many frames of direct recursion the node represents at most, itself included.
  [[nodiscard]] std::uint32_t repeats(NodeId node) const {
    return repeats_.empty() ? 1 : repeats_[node];
  }
  /// True if direct recursion was folded, so that repeats() may be more than 1.
  [[nodiscard]] bool has_repeats() const noexcept { return !repeats_.empty(); }
  /// Counts that lie left of the node; only if has_starts().
  [[nodiscard]] Count start(NodeId node) const { return starts_[node]; }
  /// True if some sum did not fit.  The children's totals may then exceed the parent's.
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

  /// Computes subtree_end() and total() from parent() and self().
  void add_up();
  /// Computes delta() of each node with its descendants.  `self_before`: self() in the first
  /// profile.
  void take_differences(std::vector<Count> self_before);
  void scale_differences();

  StringArena texts_;
  std::vector<std::string_view> names_;  ///< without duplicates; views into texts_
  std::vector<Node> nodes_;
  // Separate columns: a profile to compare with adds another.
  std::vector<Count> self_, total_;
  std::vector<Count> starts_;           ///< empty, or one a node
  std::vector<double> delta_;           ///< empty, or one a node, NaN: not known
  std::vector<std::uint32_t> repeats_;  ///< empty: all are 1
  double largest_delta_ = 0;
  bool saturated_ = false;
};

// Numbers the names of frames while a tree is built, and keeps each name once.

class NameIds {
 public:
  /// Returns the number of `name`.  New names get consecutive numbers from 0.
  std::uint32_t find_or_add(std::string_view name) {
    if (const auto found = ids_.find(name); found != ids_.end())
      return found->second;
    const auto id = static_cast<std::uint32_t>(names_.size());
    const std::string_view kept = texts_.store(name);
    names_.push_back(kept);
    ids_.emplace(kept, id);
    return id;
  }

  [[nodiscard]] const std::vector<std::string_view>& names() const noexcept { return names_; }

  /// Moves texts and names out.  Leaves the table empty and unusable.
  void move_to(StringArena& texts, std::vector<std::string_view>& names) && {
    texts = std::move(texts_);
    names = std::move(names_);
  }

 private:
  StringArena texts_;
  std::vector<std::string_view> names_;  ///< views into texts_
  boost::unordered_flat_map<std::string_view, std::uint32_t, HashBytes> ids_;
};

}  // namespace pe::painting
