// Folded stacks in, call tree out.
//
// Folded text mostly comes sorted, so a line shares most of its frames with
// the one before: only what follows the common prefix is split, looked up and
// added.  Any other order gives the same tree, slower.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "calltree/call_tree.h"

namespace pe::calltree {

class TreeBuilder {
 public:
  TreeBuilder();

  /// Adds a stack, "root;caller;leaf".  Empty frames at its end are dropped; a
  /// stack of nothing else counts for the root.  Throws Error beyond 2^32 nodes.
  void add(std::string_view stack, Count count);

  /// The tree of all that was added, children in bytewise order of their names.
  /// Leaves the builder empty and unusable.
  CallTree finish() &&;

 private:
  struct Node {
    std::uint32_t name;
    NodeId first_child, last_child, next_sibling;  ///< kRoot: none
  };
  /// A frame of previous_: where it ends there, and its node.
  struct PathStep {
    std::size_t end;
    NodeId node;
  };

  void keep_common_path(std::string_view stack);
  std::uint32_t name_id(std::string_view name);
  NodeId child(NodeId parent, std::uint32_t name);
  NodeId append_child(NodeId parent, std::uint32_t name);
  [[nodiscard]] std::vector<std::uint32_t> name_ranks() const;
  void emit_in_order();

  CallTree tree_;  ///< until finish(): the names and the saturated flag
  boost::unordered_flat_map<std::string_view, std::uint32_t, std::hash<std::string_view>> name_ids_;
  std::vector<Node> nodes_;
  std::vector<Count> self_;
  /// Children beyond their parent's first few, by parent and name.
  boost::unordered_flat_map<std::uint64_t, NodeId> far_children_;
  std::string previous_;        ///< the stack added last
  std::vector<PathStep> path_;  ///< its frames
};

}  // namespace pe::calltree
