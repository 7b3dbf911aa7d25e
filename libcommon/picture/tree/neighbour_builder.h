// Folded stacks in the order given, only neighbours merged: what a flame chart
// shows, whose x-axis is time.
//
// A frame is merged with the one just before it if both stand on the same one;
// the same function may stand on its caller several times.  flamegraph.pl makes all
// its pictures like this, from sorted lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "picture/tree/call_tree.h"
#include "picture/tree/name_ids.h"
#include "picture/tree/stack_path.h"

namespace pe::picture {

/// What a node's difference includes.
enum class Differences {
  kInclusive,  ///< all below it
  kPerl,  ///< of the stack that ends at it, and of the first line of it alone; 0 for what lies on
          ///< the way, none for what lines with one count began
};

class NeighbourBuilder {
 public:
  explicit NeighbourBuilder(Differences differences);

  /// As TreeBuilder::add().
  void add(std::string_view stack, Count count, std::optional<Count> before = {});

  /// The tree of all that was added, children in the order they came.  Leaves the
  /// builder empty and unusable.
  CallTree finish() &&;

 private:
  NodeId append(NodeId parent, std::string_view name);
  void take_before(NodeId leaf, std::size_t first_new, Count count, std::optional<Count> before);

  Differences differences_;
  CallTree tree_;
  NameIds names_;
  StackPath path_;
  Count position_;                  ///< sum of all that was added
  bool is_root_open_ = false;       ///< kPerl: the first line opens the root with its own frames
  std::vector<Count> self_before_;  ///< kInclusive: of the first nodes; 0 for those behind
};

}  // namespace pe::picture
