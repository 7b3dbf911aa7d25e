// Folded stacks in, call tree out.
//
// A stack costs what it does not share with the one before (StackPath), so sorted
// text is quick.  Any other order gives the same tree, slower.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "picture/tree/call_tree.h"
#include "picture/tree/name_ids.h"
#include "picture/tree/stack_path.h"

namespace pe::picture {

/// The counts of one profile, by node.
struct CountColumn {
  std::vector<Count> self, total;
};

/// Several profiles in one tree, which has each frame that any of them has.
struct ProfileUnion {
  CallTree tree;
  std::vector<CountColumn> profiles;
};

class TreeBuilder {
 public:
  /// What the tree calls a frame of this text; must not be empty.
  using Rename = std::function<std::string(std::string_view)>;

  /// Frames whose names `rename` makes equal become one, if they stand on the same caller.
  /// It is asked once for each text; null: texts are names.
  explicit TreeBuilder(Rename rename = nullptr);

  /// Adds a stack, "root;caller;leaf".  Empty frames at its end are dropped; a
  /// stack of nothing else counts for the root.  One stack with a count `before` makes
  /// the tree differential, where no count means 0.  Throws Error beyond 2^32 nodes.
  void add(std::string_view stack, Count count, std::optional<Count> before = {});

  /// Adds a stack of one of several profiles that are to share a tree.
  void add_to(std::size_t profile, std::string_view stack, Count count);

  /// The tree of all that was added, children in bytewise order of their names.
  /// Leaves the builder empty and unusable.
  CallTree finish() &&;

  /// The same of what add_to() added, with the counts of `profiles` profiles; those of the tree
  /// itself are those of profile 0.
  ProfileUnion finish_union(std::size_t profiles) &&;

 private:
  struct Node {
    std::uint32_t name;
    NodeId first_child, last_child, next_sibling;  ///< kRoot: none
  };

  NodeId find_or_add(std::string_view stack);
  void add_to_other(std::size_t index, NodeId node, Count count);
  std::uint32_t name_of(std::string_view frame);
  NodeId child(NodeId parent, std::uint32_t name);
  NodeId append_child(NodeId parent, std::uint32_t name);
  [[nodiscard]] std::vector<std::uint32_t> name_ranks() const;
  std::vector<NodeId> emit_in_order();
  [[nodiscard]] std::vector<Count> in_order(std::vector<Count> counts,
                                            const std::vector<NodeId>& order) const;

  CallTree tree_;  ///< until finish(): the saturated flag
  NameIds names_;
  std::vector<Node> nodes_;
  std::vector<Count> self_;                 ///< of profile 0
  std::vector<std::vector<Count>> others_;  ///< of profiles 1 and on, each of the first nodes; 0
                                            ///< for those behind
  Rename rename_;
  NameIds texts_;                     ///< of frames, if they are renamed
  std::vector<std::uint32_t> named_;  ///< for each of those texts the number of its name
  /// Children beyond their parent's first few, by parent and name.
  boost::unordered_flat_map<std::uint64_t, NodeId> far_children_;
  StackPath path_;
};

}  // namespace pe::picture
