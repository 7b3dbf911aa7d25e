// Reads folded lines from files, in order.
//
// The reader keeps facts (facts.h) apart.  It skips and counts each other line that is not "stack
// count", and keeps the first one for the closing message.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/io/input.h"
#include "folded/facts.h"
#include "folded/folded_line.h"

namespace pe::folded {

// Recognises inputs of other formats that users give to a reader of folded text by mistake.
//
// It uses only marks that folded text does not have: magic numbers, and the head of GHC's table.
// The table's lines end in numbers, so a reader would draw them as stacks.

/// Returns what the start of an input is that no reader of profiles accepts, with the command that
/// helps: "compressed by zstd (...)"; empty for anything else.
std::string_view describe_unreadable(std::string_view head);

/// Returns "a sample stream, not folded text (...)" for the start of such an input, with the
/// command that folds it; empty for anything else.
std::string_view describe_other_input(std::string_view head);

/// The lines that were skipped.
struct MalformedLines {
  std::uint64_t count = 0;
  std::string first;  ///< "FILE:LINE: 'text'", shortened and safe to print; of the first one

  bool is_two_columns = false;  ///< well-formed lines have two counts
  bool has_blank = false;       ///< was there a line of only blanks?  Such lines are not counted.

  /// Returns "ignored 2 lines that are not \"stack count\"; first: FILE:LINE: 'text'".
  [[nodiscard]] std::string describe() const;
};

class FoldedReader {
 public:
  /// `files` must outlive the reader; "-" is `stdin_fd`.  Without `columns`, the
  /// start of the first file decides whether lines have one count or two.
  FoldedReader(std::span<const std::string> files, int stdin_fd,
               std::optional<Columns> columns = Columns::kOne)
      : files_(files), are_several_(files.size() > 1), stdin_fd_(stdin_fd), columns_(columns) {}

  /// Reads one input that is already open.
  explicit FoldedReader(Input input) : stdin_fd_(-1), input_(std::move(input)) {
    lines_.emplace(*input_);
  }
  FoldedReader(const FoldedReader&) = delete;  // lines_ refers to input_
  FoldedReader& operator=(const FoldedReader&) = delete;
  FoldedReader(FoldedReader&&) = delete;
  FoldedReader& operator=(FoldedReader&&) = delete;
  ~FoldedReader() = default;

  /// Returns the next well-formed line of all files, or nullopt after the last.  The
  /// view is valid until the next call.  Throws Error if a file cannot be read, or, except for
  /// the perl scripts' columns, if it is of a known format that is not folded text, or if most of
  /// its first lines (64 KiB) are no folded lines.
  std::optional<FoldedLine> next();

  /// Returns the whole line of which next() returned the parts last.
  [[nodiscard]] std::string_view text() const noexcept { return text_; }

  /// Returns "FILE:LINE" of the current line.
  [[nodiscard]] std::string place() const;

  /// Returns the facts read so far, which come before the stacks in our own output; all of them
  /// after next() returned nullopt.  The perl scripts' columns have none.  Facts of several files
  /// are not those of their sum, so there are none either.
  [[nodiscard]] std::span<const Fact> facts() const noexcept {
    return are_several_ ? std::span<const Fact>() : facts_.all();
  }

  /// Returns the lines skipped so far.  Lines of only blanks are not counted.
  [[nodiscard]] const MalformedLines& malformed() const noexcept { return malformed_; }

  /// Returns "FILE:LINE" of the first last line without a newline; empty if there was none so far.
  /// Our tools end each line with a newline, so that line was cut, perhaps within the count.
  [[nodiscard]] const std::string& cut_line() const noexcept { return cut_line_; }

 private:
  bool open_next_file();
  void check_start();
  /// Throws Error if most lines of `head` are no folded lines.
  void check_lines(std::string_view head) const;
  [[nodiscard]] bool is_perl() const noexcept {
    return columns_ == Columns::kPerl || columns_ == Columns::kPerlOne;
  }
  void note_malformed(std::string_view line);

  std::span<const std::string> files_;  ///< files not yet opened
  bool are_several_ = false;            ///< were there several files?
  int stdin_fd_;
  std::optional<Columns> columns_ = Columns::kOne;
  std::optional<Input> input_;
  std::optional<LineReader> lines_;  ///< of input_
  std::string_view text_;
  Facts facts_;
  MalformedLines malformed_;
  std::string cut_line_;
};

}  // namespace pe::folded
