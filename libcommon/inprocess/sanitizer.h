// Whether a program is built with AddressSanitizer in a library of its own, as gcc builds it: that
// library ends a program in which another one was loaded before it.
//
// For programs that are about to be begun, by us or by a program that carries a library of ours:
// nothing is allocated, and little of the stack is used, as in the child of a vfork(2).
//
// Source: the System V gABI, chapter 5, "Dynamic Section".
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace pe::inprocess {

/// The name of a library, such as "libasan.so.8", or its beginning.
class LibraryName {
 public:
  static constexpr std::size_t kMost = 63;

  [[nodiscard]] std::string_view view() const noexcept { return characters_.data(); }
  [[nodiscard]] bool empty() const noexcept { return characters_[0] == '\0'; }
  /// Room for kMost characters; what is behind them stays 0.
  [[nodiscard]] char* data() noexcept { return characters_.data(); }

 private:
  std::array<char, kMost + 1> characters_{};
};

/// The runtime of AddressSanitizer among the libraries that a 64-bit ELF file asks for (DT_NEEDED);
/// empty if there is none, or it cannot be told.  `fd` is open for reading, and is not moved.
LibraryName find_sanitizer(int fd) noexcept;

/// Does that library start behind another one?  `options` is the text of ASAN_OPTIONS.
bool takes_any_order(std::string_view options) noexcept;

}  // namespace pe::inprocess
