// The stack added last, and the node of each of its frames: folded text mostly
// comes sorted, so the next stack shares most of them, and only what follows the
// common prefix has to be split and looked up.
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
  /// Keeps the frames that `stack` begins with, and remembers all of its text.
  /// push() must follow for each of the others.
  void keep_common(std::string_view stack);
  /// The frame up to byte `end` of the text is `node`.
  void push(std::size_t end, NodeId node) { steps_.push_back({.end = end, .node = node}); }

  /// Where the text goes on behind the frames that are known.
  [[nodiscard]] std::size_t next_frame() const {
    return steps_.empty() ? 0 : steps_.back().end + 1;
  }
  /// The innermost frame that is known; kRoot if there is none.
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

/// `stack` without the empty frames at its end, which stand for nothing.
inline std::string_view without_empty_end(std::string_view stack) {
  return stack.substr(0, stack.find_last_not_of(';') + 1);
}

}  // namespace pe::picture
