// Folded stacks in, call tree out.
//
// A stack costs what it does not share with the one before (StackPath), so sorted
// text is quick.  Any other order gives the same tree, slower.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "calltree/call_tree.h"
#include "calltree/name_ids.h"
#include "calltree/stack_path.h"

namespace pe::calltree {

class TreeBuilder {
 public:
  TreeBuilder();

  /// Adds a stack, "root;caller;leaf".  Empty frames at its end are dropped; a
  /// stack of nothing else counts for the root.  One stack with a count `before` makes
  /// the tree differential, where no count means 0.  Throws Error beyond 2^32 nodes.
  void add(std::string_view stack, Count count, std::optional<Count> before = {});

  /// The tree of all that was added, children in bytewise order of their names.
  /// Leaves the builder empty and unusable.
  CallTree finish() &&;

 private:
  struct Node {
    std::uint32_t name;
    NodeId first_child, last_child, next_sibling;  ///< kRoot: none
  };

  NodeId child(NodeId parent, std::uint32_t name);
  NodeId append_child(NodeId parent, std::uint32_t name);
  [[nodiscard]] std::vector<std::uint32_t> name_ranks() const;
  std::vector<Count> emit_in_order();

  CallTree tree_;  ///< until finish(): the saturated flag
  NameIds names_;
  std::vector<Node> nodes_;
  std::vector<Count> self_;
  std::vector<Count> self_before_;  ///< of the first nodes; 0 for those behind
  /// Children beyond their parent's first few, by parent and name.
  boost::unordered_flat_map<std::uint64_t, NodeId> far_children_;
  StackPath path_;
};

}  // namespace pe::calltree
