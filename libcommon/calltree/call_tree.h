// The tree that folded stacks describe: every frame once below its caller,
// with the counts that ended in it and those that passed through it.
//
// Nodes lie in depth-first order, so a subtree is a range: the children of `n`
// begin at n + 1, the next sibling of `n` is subtree_end(n), and walking the
// tree is a loop over indices.  No function here recurses; stacks may be
// 100,000 frames deep.  44 bytes a node.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/string_arena.h"
#include "folded/count.h"

namespace pe::calltree {

using folded::Count;

/// Index of a node; a parent's is below its children's.
using NodeId = std::uint32_t;
/// The node above all stacks.  It has no name and is its own parent.
inline constexpr NodeId kRoot = 0;

/// Made by TreeBuilder.
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
  /// self() of the node and all its descendants; Count::max() if that does not fit.
  [[nodiscard]] Count total(NodeId node) const { return total_[node]; }
  /// Did some sum not fit?  If so, the children's totals may exceed the parent's.
  [[nodiscard]] bool saturated() const noexcept { return saturated_; }

 private:
  friend class TreeBuilder;
  struct Node {
    std::uint32_t name;  ///< index into names_
    NodeId parent;
    NodeId subtree_end;
  };

  StringArena texts_;
  std::vector<std::string_view> names_;  ///< each once, views into texts_
  std::vector<Node> nodes_;
  // Columns of their own: a second profile to compare with adds two more.
  std::vector<Count> self_, total_;
  bool saturated_ = false;
};

}  // namespace pe::calltree
