// The same profile in another shape.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "picture/tree/call_tree.h"

namespace pe::picture {

class Reshaper {
 public:
  /// Children by total, the largest first; those of one size stay in their order.  No
  /// frame has a place of its own then.
  static CallTree by_width(CallTree tree);

  /// What lies deeper than `levels` frames becomes one frame on each that has such
  /// callees, "[3 deeper frames]".  `levels` is 1 or more.
  static CallTree limited(CallTree tree, std::uint32_t levels);

 private:
  static CallTree empty_like(CallTree& tree);
  static void copy(const CallTree& from, NodeId node, NodeId parent, CallTree& to);
  static void append_folded(CallTree& from, NodeId node, CallTree& to);
};

}  // namespace pe::picture
