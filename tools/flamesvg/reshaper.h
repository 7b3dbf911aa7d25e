// Changes the shape of a call tree, not its counts.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "painting/tree/call_tree.h"

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

}  // namespace pe::painting
