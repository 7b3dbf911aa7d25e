// Changes the shape of a call tree, not its counts.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"
#include "painting/tree/stack_path.h"

namespace pe::painting {

class Reshaper {
 public:
  /// Sorts children by total, the largest first; equal ones keep their order.  The result has no
  /// starts.
  static CallTree by_width(CallTree tree);

  /// Merges each frame with its caller if both have one name.  Their other callees are merged by
  /// name, too, and are in order of their names.  `tree` has no starts.
  static CallTree without_recursion(CallTree tree);

  /// Replaces all callees of each frame at depth `levels` by one frame, "[3 deeper frames]".
  /// `levels` is 1 or more.
  static CallTree limited(CallTree tree, std::uint32_t levels);

 private:
  static CallTree empty_like(CallTree& tree);
  static void copy(const CallTree& from, NodeId node, NodeId parent, CallTree& to);
  struct Member {
    NodeId node;
    std::uint32_t repeats;  ///< of its name, up to and including itself
  };
  static std::vector<NodeId> merge(const CallTree& tree, std::vector<Member> members, CallTree& to);
  static void append_folded(CallTree& from, NodeId node, CallTree& to);
};

// Builds the tree of a flame chart, whose x-axis is time: stacks keep their order,
// and only neighbours are merged.
//
// A frame is merged with the frame just before it if both have the same name and caller.
// A function may thus appear on its caller several times.  flamegraph.pl builds all its
// flame graphs this way, from sorted lines.

/// Which stacks a node's difference includes.
enum class Differences {
  kInclusive,  ///< those of the node and all its descendants
  /// Only the line that opened the node, if it ends there, or else 0.  The difference is unknown if
  /// that line has one count.
  kPerl,
};

class NeighbourBuilder {
 public:
  explicit NeighbourBuilder(Differences differences);

  /// Like TreeBuilder::add().
  void add(std::string_view stack, Count count, std::optional<Count> before = {});

  /// Returns the tree of all added stacks, children in the order they were added.  Leaves the
  /// builder empty and unusable.
  CallTree finish() &&;

 private:
  NodeId append(NodeId parent, std::string_view name);
  NodeId follow(std::string_view stack);
  void take_before(NodeId leaf, std::size_t first_new, Count count, std::optional<Count> before);

  Differences differences_;
  CallTree tree_;
  NameIds names_;
  StackPath path_;
  Count position_;                  ///< sum of all added counts
  bool is_root_open_ = false;       ///< kPerl: true once the first line has opened the root
  std::vector<Count> self_before_;  ///< kInclusive: by node; 0 for nodes beyond its end
};

}  // namespace pe::painting
