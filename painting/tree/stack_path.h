// Remembers the stack added last and the node of each of its frames.
//
// Folded text is mostly sorted, so the next stack shares most frames.  Only the frames after
// the common prefix have to be split and looked up.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::painting {

/// Returns `stack` without the empty frames at its end, which have no meaning.
inline std::string_view without_empty_end(std::string_view stack) {
  return stack.substr(0, stack.find_last_not_of(';') + 1);
}

class StackPath {
 public:
  /// Remembers `stack`, without empty frames at its end.  Calls `child` with a node and the frame
  /// after it, for each frame that the stack before does not share; it returns the frame's node.
  /// Returns the node of the last frame; kRoot if there is none.
  template <typename Child>
  NodeId follow(std::string_view stack, Child&& child) {
    stack = without_empty_end(stack);
    keep_common(stack);
    NodeId node = steps_.empty() ? kRoot : steps_.back().node;
    for (std::size_t start = steps_.empty() ? 0 : steps_.back().end + 1; start < stack.size();) {
      const std::size_t end = std::min(stack.find(';', start), stack.size());
      node = child(node, stack.substr(start, end - start));
      steps_.push_back({.end = end, .node = node});
      start = end + 1;
    }
    return node;
  }

 private:
  /// Keeps the frames that `stack` starts with, and remembers its text.
  void keep_common(std::string_view stack);

  struct Step {
    std::size_t end;  ///< in text_
    NodeId node;
  };
  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace pe::painting
