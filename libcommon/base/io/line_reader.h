// Reads the lines of an input, without copying those that fit the buffer.
//
// The length of a line is limited, because 100 KB of compressed text can be one line of gigabytes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/io/input.h"

namespace pe {

/// Returns the lines of an Input, each without its newline.  A last line that lacks one still
/// counts.  Memory: one block, or the longest line.
class LineReader {
 public:
  static constexpr std::size_t kLongestBytes = std::size_t{256} << 20;  ///< a stack of 4M frames

  /// `input` must outlive the reader.
  explicit LineReader(Input& input, std::size_t longest_bytes = kLongestBytes);

  /// Returns the next line, or nullopt at the end.  The view is valid until the next call.
  /// Throws Error if the input cannot be read, or a line is longer than `longest_bytes`.
  std::optional<std::string_view> next();

  /// Returns the number of the line that next() returned last, counted from 1.
  [[nodiscard]] std::uint64_t line_number() const noexcept { return line_number_; }

  /// Returns whether the line that next() returned last had no newline.  Only the last line of the
  /// input can lack it.
  [[nodiscard]] bool lacks_newline() const noexcept { return lacks_newline_; }

 private:
  bool fill();

  Input& input_;
  std::size_t longest_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< unread bytes of buffer_
  bool at_end_ = false;
  bool lacks_newline_ = false;
  std::uint64_t line_number_ = 0;
};

}  // namespace pe
