// A short text that needs no allocated memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace pe::inprocess {

class ShortText {
 public:
  static constexpr std::size_t kMost = 107;  ///< unix(7): sun_path without its first byte

  /// False, and no change, if `text` is too long.
  bool set(std::string_view text) noexcept {
    if (text.size() > kMost)
      return false;
    std::copy(text.begin(), text.end(), characters_.begin());
    size_ = text.size();
    return true;
  }
  [[nodiscard]] std::string_view view() const noexcept { return {characters_.data(), size_}; }

 private:
  std::array<char, kMost> characters_{};
  std::size_t size_ = 0;
};

}  // namespace pe::inprocess
