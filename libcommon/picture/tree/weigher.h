// A tree of the same frames with other counts, to be drawn by them.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "picture/tree/call_tree.h"

namespace pe::picture {

struct WeighedTree {
  CallTree tree;
  std::vector<NodeId> origin;  ///< for each node, the one of the shape that it shows
  NodeId aside = kRoot;        ///< the frame of what stands aside; kRoot: there is none
};

/// What a node counts by itself.
struct Weights {
  std::vector<Count> self;
  /// Where `self` has nothing for a frame and all above it, but it is to be seen: what it counts
  /// in a copy of its stack that stands aside, on a frame of its own beside the others.
  std::vector<Count> aside;
  std::string_view aside_name;
};

class Weigher {
 public:
  /// Only frames with a total above 0 are in the result.  `shape` must outlive it: names are
  /// shared.
  static WeighedTree weigh(const CallTree& shape, const Weights& weights);

 private:
  static void copy(const CallTree& shape, const std::vector<Count>& self, NodeId onto,
                   WeighedTree& to);
};

}  // namespace pe::picture
