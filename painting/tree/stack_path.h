// Divides the text of a stack into frames, and remembers those of the stack before.
//
// Folded text is mostly sorted, so the next stack shares most frames.  Only the frames after
// the common prefix have to be split and looked up.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pe::painting {

/// Returns `stack` without the empty frames at its end, which have no meaning.
inline std::string_view without_empty_end(std::string_view stack) {
  return stack.substr(0, stack.find_last_not_of(';') + 1);
}

class StackPath {
 public:
  /// Calls `number_of(before, frame)` for each frame of `stack` that the stack before does not
  /// share.  It returns the frame's number; `before` has the numbers of the frames before it.
  /// Returns the numbers of all frames, root first, until the next call.  An empty text is a stack
  /// with one empty frame.
  template <typename NumberOf>
  std::span<const std::uint32_t> follow(std::string_view stack, NumberOf&& number_of) {
    keep_common(stack);
    for (std::size_t start = ends_.empty() ? 0 : ends_.back() + 1; start <= stack.size();) {
      const std::size_t end = std::min(stack.find(';', start), stack.size());
      numbers_.push_back(
          number_of(std::span<const std::uint32_t>(numbers_), stack.substr(start, end - start)));
      ends_.push_back(end);
      start = end + 1;
    }
    return numbers_;
  }

  /// Forgets the stack before.
  void clear() {
    text_.clear();
    ends_.clear();
    numbers_.clear();
  }

 private:
  /// Keeps the frames that `stack` starts with, and remembers its text.
  void keep_common(std::string_view stack);

  std::string text_;
  std::vector<std::size_t> ends_;  ///< of each frame in text_
  std::vector<std::uint32_t> numbers_;
};

}  // namespace pe::painting
