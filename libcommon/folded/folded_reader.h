// Folded lines out of files, read in order.
//
// A line that is not "stack count" is stepped over and counted; the first one
// is kept for the closing message.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/io/line_reader.h"
#include "folded/folded_line.h"

namespace pe::folded {

/// The lines that were stepped over.
struct MalformedLines {
  std::uint64_t count = 0;
  std::string first;  ///< "FILE:LINE: 'text'", shortened and safe to print; of the first one

  bool is_two_columns = false;  ///< the others have two counts
  bool has_blank = false;       ///< was there a line of nothing but blanks?  Not counted.

  /// "ignored 2 lines that are not \"stack count\"; first: FILE:LINE: 'text'".
  [[nodiscard]] std::string describe() const;
};

class FoldedReader {
 public:
  /// `files` must outlive the reader; "-" is `stdin_fd`.  Without `columns`, the
  /// beginning of the first file decides whether lines have one count or two.
  FoldedReader(std::span<const std::string> files, int stdin_fd,
               std::optional<Columns> columns = Columns::kOne)
      : files_(files), stdin_fd_(stdin_fd), columns_(columns) {}

  /// Reads one input that is open already.
  explicit FoldedReader(Input input) : stdin_fd_(-1), input_(std::move(input)) {
    lines_.emplace(*input_);
  }
  FoldedReader(const FoldedReader&) = delete;  // lines_ refers to input_
  FoldedReader& operator=(const FoldedReader&) = delete;
  FoldedReader(FoldedReader&&) = delete;
  FoldedReader& operator=(FoldedReader&&) = delete;
  ~FoldedReader() = default;

  /// The next well-formed line of all files, or nullopt after the last.  The
  /// view dies with the next call.  Throws Error if a file cannot be read.
  std::optional<FoldedLine> next();

  /// "FILE:LINE" of the line at hand.
  [[nodiscard]] std::string place() const;

  /// What was stepped over so far.  Lines of nothing but blanks do not count.
  [[nodiscard]] const MalformedLines& malformed() const noexcept { return malformed_; }

  /// "FILE:LINE" of a last line that had no newline; empty if there was none so far.  What our
  /// tools write ends in one, so that it was cut, perhaps within the count.
  [[nodiscard]] const std::string& cut_line() const noexcept { return cut_line_; }

 private:
  bool open_next_file();
  void note_malformed(std::string_view line);

  std::span<const std::string> files_;  ///< those not yet opened
  int stdin_fd_;
  std::optional<Columns> columns_ = Columns::kOne;
  std::optional<Input> input_;
  std::optional<LineReader> lines_;  ///< of input_
  MalformedLines malformed_;
  std::string cut_line_;
};

}  // namespace pe::folded
