// Draws a comparison as a flame graph.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "base/cli/run.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"
#include "painting/tree/call_tree.h"

// Makes a tree of the same frames with other counts, which give the widths when it is drawn.

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

namespace pe::flamediff {

/// Writes the page to io.out.  Reports replaced characters and a missing embedded tree.
void draw(const painting::CallTree& tree, const Comparison& comparison, const Options& options,
          Io& io);

/// Writes a page that shows only `message`.
void draw_error(std::string_view message, const Options& options, Output& out);

}  // namespace pe::flamediff
