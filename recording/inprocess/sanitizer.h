// Finds out whether a program is built with AddressSanitizer in a separate library, as gcc builds
// it.  That library ends the program if another library was loaded before it.
//
// Called just before a program is started, by us or by a program that carries a library of ours.
// The caller may be the child of a vfork(2), so nothing is allocated and little stack is used.
//
// Source: the System V gABI, chapter 5, "Dynamic Section".
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace pe::inprocess {

/// The name of a library, such as "libasan.so.8", or the start of a longer name.
class LibraryName {
 public:
  static constexpr std::size_t kMost = 63;

  [[nodiscard]] std::string_view view() const noexcept { return characters_.data(); }
  [[nodiscard]] bool empty() const noexcept { return characters_[0] == '\0'; }
  /// Room for kMost characters; the byte after them stays 0.
  [[nodiscard]] char* data() noexcept { return characters_.data(); }

 private:
  std::array<char, kMost + 1> characters_{};
};

/// Returns the AddressSanitizer runtime among the libraries that a 64-bit ELF file needs
/// (DT_NEEDED).  Empty if there is none, or if the file is unreadable or malformed.  `fd` is open
/// for reading; its offset does not change.
LibraryName find_sanitizer(int fd) noexcept;

/// Whether that library may follow another one.  `options` is the text of ASAN_OPTIONS.
bool takes_any_order(std::string_view options) noexcept;

// Finds the program that a script's first line names, as the kernel does (execve(2), "Interpreter
// scripts").

inline constexpr std::size_t kScriptLineBytes = 256;  ///< length of the part that the kernel reads
inline constexpr int kMostInterpreters = 5;           ///< length of a chain of scripts

/// Returns the interpreter after "#!" at the start of a file; empty if the file is no script or
/// names none.
constexpr std::string_view interpreter_in(std::string_view head) noexcept {
  constexpr std::string_view kMark = "#!", kEnds(" \t\n\0", 4);
  if (!head.starts_with(kMark))
    return {};
  head.remove_prefix(kMark.size());
  const std::size_t begin = head.find_first_not_of(" \t");
  if (begin == std::string_view::npos)
    return {};
  head.remove_prefix(begin);
  return head.substr(0, head.find_first_of(kEnds));
}

}  // namespace pe::inprocess
