// What is usually done about functions of some name, from files that users extend.
//
// A file is rules.  A rule is one or more lines that begin in the first column, each a regular
// expression, and the lines behind that begin with a blank, its text:
//
//     # a comment
//     ^_?_?mem(cpy|move)
//     ^__memmove_
//         Copying memory.  Look at the callers: ...
//
// Lines of the text are joined; lines of nothing but blanks and those that begin with '#' mean
// nothing. The grammar is written down for users in stacktop(1).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "folded/expression.h"

namespace pe::stacktop {

struct Hint {
  std::vector<folded::Expression> expressions;  ///< at least one
  std::string text;                             ///< one line, not empty
};

class Hints {
 public:
  /// Adds the rules of a file behind those that are known.  `name` is what messages call it.
  void add(std::string_view text, std::string_view name);

  /// The index of the first rule that matches `function`, whose mark ("_[k]") is not looked
  /// at; size() if none does.
  [[nodiscard]] std::size_t find(std::string_view function) const;
  [[nodiscard]] const Hint& operator[](std::size_t index) const { return hints_[index]; }
  [[nodiscard]] std::size_t size() const noexcept { return hints_.size(); }

  /// Lines that were stepped over: one too many, no expression, an expression without text, a text
  /// without expression.
  [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }
  /// "FILE:LINE: why: 'text'" of the first of them.
  [[nodiscard]] const std::string& first_ignored() const noexcept { return first_ignored_; }

 private:
  class FileParser;

  /// Each expression takes some KB, and some MB at most when it is matched.
  static constexpr std::size_t kMostExpressions = 4096;
  static constexpr std::size_t kMostInstructions = 1'000'000;

  std::vector<Hint> hints_;
  std::size_t expressions_ = 0;   ///< seen, those that are none among them
  std::size_t instructions_ = 0;  ///< of all of them
  std::uint64_t ignored_ = 0;
  std::string first_ignored_;
};

}  // namespace pe::stacktop
