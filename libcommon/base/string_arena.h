// Stores text as long as its owner lives.  It does not allocate for each string, and never moves
// one.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace pe {

/// Copies texts into large blocks.  The views that store() returns are valid as long as the arena
/// lives, also when it is moved.
class StringArena {
 public:
  std::string_view store(std::string_view text) {
    if (text.size() > left_)
      add_block(text.size());
    char* const start = next_;
    if (!text.empty())
      std::memcpy(start, text.data(), text.size());
    next_ += text.size();
    left_ -= text.size();
    return {start, text.size()};
  }

 private:
  void add_block(std::size_t needed) {
    constexpr std::size_t kBlockBytes = 256 * 1024;
    left_ = std::max(needed, kBlockBytes);
    // make_unique would first fill every block with zeros.
    next_ = blocks_.emplace_back(new char[left_]).get();
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace pe
