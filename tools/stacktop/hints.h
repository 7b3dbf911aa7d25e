// Gives hints on how functions of some name are usually optimised, from files that users extend.
//
// A file consists of rules.  A rule has one or more regular expressions, on lines that start in the
// first column, followed by its text, on lines that start with a blank:
//
//     # a comment
//     ^_?_?mem(cpy|move)
//     ^__memmove_
//         Copying memory.  Look at the callers: ...
//
// The lines of the text are joined.  Blank lines and lines that start with '#' are ignored.
// stacktop(1) documents the grammar for users.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "folded/build_details.h"

namespace pe::stacktop {

struct Hint {
  std::vector<folded::Expression> expressions;  ///< at least one
  std::string text;                             ///< one line, not empty
};

class Hints {
 public:
  /// Appends the rules of a file.  `name` is the file's name in messages.
  void add(std::string_view text, std::string_view name);

  /// Returns the index of the first rule that matches `function` without its mark ("_[k]");
  /// size() if no rule matches.
  [[nodiscard]] std::size_t find(std::string_view function) const;
  [[nodiscard]] const Hint& operator[](std::size_t index) const { return hints_[index]; }
  [[nodiscard]] std::size_t size() const noexcept { return hints_.size(); }

  /// Number of ignored lines: expressions beyond the limits, invalid expressions, expressions
  /// without text, and text without an expression.
  [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }
  /// "FILE:LINE: why: 'text'" of the first ignored line.
  [[nodiscard]] const std::string& first_ignored() const noexcept { return first_ignored_; }

 private:
  class FileParser;

  /// Each expression takes a few KB of memory, and at most a few MB during matching.
  static constexpr std::size_t kMostExpressions = 4096;
  static constexpr std::size_t kMostInstructions = 1'000'000;

  std::vector<Hint> hints_;
  std::size_t expressions_ = 0;   ///< parsed so far, invalid ones included
  std::size_t instructions_ = 0;  ///< of all valid expressions
  std::uint64_t ignored_ = 0;
  std::string first_ignored_;
};

// Finds and reads the files of hints: the user's files and the installed one.

/// Reads `files`, which must exist.  Also reads, if they exist, the user's file
/// ($XDG_CONFIG_HOME/stackpipe/hints or ~/.config/stackpipe/hints) and the installed file.
/// Hints::find() returns the first rule that matches, so the users' own rules come first.
/// Throws Error.
Hints load_hints(std::span<const std::string> files);

}  // namespace pe::stacktop
