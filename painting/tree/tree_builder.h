// Builds a call tree from folded stacks.
//
// The cost of a stack is that of the frames it does not share with the one before (StackPath),
// so sorted text is fast.  Any other order gives the same tree, more slowly.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"
#include "painting/tree/stack_path.h"

namespace pe::painting {

/// Counts of one profile, by node.
struct CountColumn {
  std::vector<Count> self, total;
};

/// Several profiles in one tree, which has every frame of any of them.
struct ProfileUnion {
  CallTree tree;
  std::vector<CountColumn> profiles;
};

class TreeBuilder {
 public:
  /// Returns the name in the tree for a frame of this text; the name must not be empty.
  using Rename = std::function<std::string(std::string_view)>;

  /// Merges frames whose names `rename` makes equal, if they have the same caller.
  /// Calls it once for each text.  If it is null, texts are names.
  explicit TreeBuilder(Rename rename = nullptr);

  /// Adds a stack, "root;caller;leaf".  Drops empty frames at its end; a stack of only
  /// empty frames counts for the root.  One stack with a count `before` makes the tree
  /// differential; in all others a missing `before` means 0.  Throws Error beyond 2^32 - 1 nodes.
  /// Returns the builder's number of the stack's node.
  NodeId add(std::string_view stack, Count count, std::optional<Count> before = {});

  /// Adds a stack of one of several profiles that share the tree.
  void add_to(std::size_t profile, std::string_view stack, Count count);

  /// Returns the tree of all added stacks, children in bytewise order of their names.
  /// Leaves the builder empty and unusable.
  CallTree finish() &&;
  /// Also sets `nodes` to the tree's node for each number that add() returned.
  CallTree finish(std::vector<NodeId>& nodes) &&;

  /// Like finish(), for stacks from add_to(), with the counts of `profiles` profiles.  The tree
  /// itself has the counts of profile 0.
  ProfileUnion finish_union(std::size_t profiles) &&;

 private:
  /// A frame's text and the name that it has in the tree; without rename_ they are the same.
  struct Text {
    std::uint32_t text, name;
  };
  struct Node {
    std::uint32_t name;
    std::uint32_t text;                            ///< of its first stack
    NodeId first_child, last_child, next_sibling;  ///< kRoot: none
    NodeId found;  ///< the child that next_child() returned last; kRoot: none
  };

  NodeId find_or_add(std::string_view stack);
  void add_to_other(std::size_t index, NodeId node, Count count);
  Text text_of(std::string_view frame);
  NodeId child(NodeId parent, Text frame);
  NodeId next_child(NodeId parent, std::string_view frame);
  NodeId append_child(NodeId parent, Text frame);
  [[nodiscard]] std::vector<std::uint32_t> name_ranks() const;
  CallTree finish_in(const std::vector<NodeId>& order);
  std::vector<NodeId> emit_in_order();
  [[nodiscard]] std::vector<Count> in_order(std::vector<Count> counts,
                                            const std::vector<NodeId>& order) const;

  CallTree tree_;  ///< before finish() only its saturated flag is set
  NameIds names_;
  std::vector<Node> nodes_;
  std::vector<Count> self_;                 ///< of profile 0
  std::vector<std::vector<Count>> others_;  ///< of profiles from 1 on, by node; 0 for nodes beyond
                                            ///< the end
  Rename rename_;
  NameIds texts_;                     ///< of frames before renaming; only with rename_
  std::vector<std::uint32_t> named_;  ///< for each text, the number of its name
  /// Children beyond their parent's first few, by parent and name.
  boost::unordered_flat_map<std::uint64_t, NodeId> far_children_;
  StackPath path_;
  bool is_first_ = true;  ///< the stack being added is of the first profile
};

}  // namespace pe::painting
