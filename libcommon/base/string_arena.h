// Text that is kept as long as its owner: no allocation a string, no move ever.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace pe {

/// Copies texts into large blocks.  The views that store() returns live as long
/// as the arena, also when it is moved.
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
    // Not make_unique, which would write zeros over every block first.
    next_ = blocks_.emplace_back(new char[left_]).get();
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace pe
