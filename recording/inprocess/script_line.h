// Finds the program that a script's first line names, as the kernel does (execve(2), "Interpreter
// scripts").
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

namespace pe::inprocess {

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
