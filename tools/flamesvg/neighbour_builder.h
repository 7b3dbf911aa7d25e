// Builds the tree of a flame chart, whose x-axis is time: stacks keep their order,
// and only neighbours are merged.
//
// A frame is merged with the frame just before it if both have the same name and caller.
// A function may thus appear on its caller several times.  flamegraph.pl builds all its
// flame graphs this way, from sorted lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"
#include "painting/tree/name_ids.h"
#include "painting/tree/stack_path.h"

namespace pe::painting {

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
