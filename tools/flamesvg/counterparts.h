// Finds the nodes of a tree again after a Reshaper has changed its shape.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::painting {

class Counterparts {
 public:
  /// Remembers the shape of a tree.
  explicit Counterparts(const CallTree& tree);

  /// Returns for each node of the tree the node that has its counts in `reshaped`, which a Reshaper
  /// made of it: the frame of that name on the counterpart of its caller; else this counterpart
  /// itself, if it has the name; else its only callee, which represents deeper frames.
  [[nodiscard]] std::vector<NodeId> in(const CallTree& reshaped) const;

 private:
  struct Node {
    std::uint32_t name;
    NodeId parent;
  };
  std::vector<Node> nodes_;
};

}  // namespace pe::painting
