// Makes a tree of the same frames with other counts, which give the widths when it is drawn.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::painting {

struct WeighedTree {
  CallTree tree;
  std::vector<NodeId> origin;  ///< for each node, the node of the shape that it shows
  NodeId aside = kRoot;        ///< the frame that holds the copies set aside; kRoot: none
};

/// Own counts, by node.
struct Weights {
  std::vector<Count> self;
  /// Counts of frames that `self` leaves without any width.  Copies of their stacks are drawn aside
  /// with these counts, on a separate child of the root.
  std::vector<Count> aside;
  std::string_view aside_name;
};

class Weigher {
 public:
  /// Only frames with a total above 0 are in the result.  `shape` must outlive it, because both
  /// share names.
  static WeighedTree weigh(const CallTree& shape, const Weights& weights);

 private:
  static void copy(const CallTree& shape, const std::vector<Count>& self, NodeId onto,
                   WeighedTree& to);
};

}  // namespace pe::painting
