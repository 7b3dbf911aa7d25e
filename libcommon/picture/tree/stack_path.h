// Remembers the stack added last and the node of each of its frames.
//
// Folded text is mostly sorted, so the next stack shares most frames.  Only the frames after
// the common prefix have to be split and looked up.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "picture/tree/call_tree.h"

namespace pe::picture {

class StackPath {
 public:
  /// Keeps the frames that `stack` starts with, and remembers its text.
  /// The caller must push() each of the other frames.
  void keep_common(std::string_view stack);
  /// Adds `node` for the frame that ends at byte `end` of the text.
  void push(std::size_t end, NodeId node) { steps_.push_back({.end = end, .node = node}); }

  /// Byte at which the first frame without a node starts.
  [[nodiscard]] std::size_t next_frame() const {
    return steps_.empty() ? 0 : steps_.back().end + 1;
  }
  /// Node of the innermost known frame; kRoot if there is none.
  [[nodiscard]] NodeId node() const { return steps_.empty() ? kRoot : steps_.back().node; }
  [[nodiscard]] std::size_t depth() const noexcept { return steps_.size(); }

 private:
  struct Step {
    std::size_t end;  ///< in text_
    NodeId node;
  };
  std::string text_;
  std::vector<Step> steps_;
};

/// Returns `stack` without the empty frames at its end, which have no meaning.
inline std::string_view without_empty_end(std::string_view stack) {
  return stack.substr(0, stack.find_last_not_of(';') + 1);
}

}  // namespace pe::picture
