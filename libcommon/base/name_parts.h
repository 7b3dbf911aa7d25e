// Steps over the operators and the groups in brackets of a C++, Rust or D name:
// "f<A, B>(int)" is f, <A, B>, (int); "operator()(a->b)" is operator(), (a->b).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

namespace pe {

/// Returns the length of the symbols that `text`, which follows the word "operator", starts with,
/// if they look like brackets: "()", "<<", "->*", " new[]".  0 if it starts with none.
std::size_t length_of_operator(std::string_view text);

class NameParts {
 public:
  explicit NameParts(std::string_view name) : name_(name) {}

  /// Returns the position after the operator, the group in brackets, or the byte at `at`.  A
  /// bracket that never closes is a byte.  `->` is no bracket.
  std::size_t next(std::size_t at);

 private:
  std::string_view name_;
  int left_open_ = 0;  ///< brackets that never close
};

}  // namespace pe
