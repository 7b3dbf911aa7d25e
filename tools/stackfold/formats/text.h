// Helpers with which the readers of text formats parse a line.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/characters.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "stackfold/folded_counts.h"
#include "stackfold/options.h"
#include "stackfold/text_report.h"

namespace pe::fold {

/// Removes blanks at both ends.
inline std::string_view trim(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

inline bool is_indented(std::string_view line) noexcept {
  return !line.empty() && is_blank(line[0]);
}

/// Cuts off the first line and returns it without its line end; nullopt if none is left.
inline std::optional<std::string_view> take_line(std::string_view& text) noexcept {
  if (text.empty())
    return std::nullopt;
  const auto end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  return line;
}

/// Does `is_wanted` accept any line of the text?
template <typename IsWanted>
bool has_line(std::string_view text, IsWanted&& is_wanted) {
  while (const auto line = take_line(text))
    if (is_wanted(*line))
      return true;
  return false;
}

/// Returns the number if the line has nothing else but blanks around it.
inline std::optional<std::uint64_t> lone_number(std::string_view line) noexcept {
  return parse_number<std::uint64_t>(trim(line));
}

/// Cuts the offset in the function from "f+0x1f", "f+0x1f/0x20" and "f+31".
inline std::string_view cut_offset(std::string_view frame) noexcept {
  const auto plus = frame.rfind('+');
  if (plus == std::string_view::npos || plus == 0)
    return frame;
  std::string_view rest = frame.substr(plus + 1);
  const bool is_number = !rest.empty() && is_digit(rest[0]) &&
                         rest.find_first_not_of("0123456789abcdefABCDEFx/") == rest.npos;
  return is_number ? frame.substr(0, plus) : frame;
}

/// Cuts the address from "7f2c1a2b3c4d f"; an address has at least twelve digits.
inline std::string_view cut_address(std::string_view frame) noexcept {
  constexpr std::size_t kFewestDigits = 12;
  const auto* const end = std::find_if_not(frame.begin(), frame.end(), is_hex);
  const auto digits = static_cast<std::size_t>(end - frame.begin());
  if (digits < kFewestDigits || digits == frame.size() || !is_blank(frame[digits]))
    return frame;
  const std::string_view rest = trim(frame.substr(digits));
  return rest.empty() ? frame : rest;
}

// Reads the lines of a text input, and counts lines outside of its format.

class TextLines {
 public:
  /// Both must outlive this.
  TextLines(Input& input, TextReport& report) : input_(input), lines_(input), report_(report) {}

  /// Returns the next line without its Unix or DOS line end; nullopt at the end of the input.
  /// The next call invalidates the view.
  std::optional<std::string_view> next();

  /// Counts `line`, which next() returned last, as outside of the format.
  void ignore(std::string_view line) { ignore(line, line_number(), 1); }
  /// The same for `count` lines; `first` is the first of them and has the line number `number`.
  void ignore(std::string_view first, std::uint64_t number, std::uint64_t count);

  /// The number of the line that next() returned last.
  [[nodiscard]] std::uint64_t line_number() const noexcept { return lines_.line_number(); }

 private:
  Input& input_;
  LineReader lines_;
  TextReport& report_;
};

// Collects one stack of a text, leaf first, until its count is known.

class StackBuilder {
 public:
  /// `counts` must outlive this.
  explicit StackBuilder(folded::FoldedCounts& counts) : counts_(counts) {}

  /// Adds the next frame towards the root: the name, cleaned for folded text, and `mark`.
  void add_caller(std::string_view name, std::string_view mark = {});
  /// Adds a frame below all callers: the first one added is the root.
  void add_root(std::string_view name);
  /// Appends `mark` to every caller added since the last call.
  void mark_callers(std::string_view mark);
  /// Moves the last `count` callers to the leaf's end, above those added before.
  void rotate_callers(std::size_t count);

  /// Adds the stack to the counts and clears it.  A stack without frames becomes "[unknown]".  With
  /// a timeline, `time_ns` is a noted time.
  void count(std::uint64_t weight, std::uint64_t time_ns = 0);
  void clear();

  [[nodiscard]] std::size_t callers() const noexcept { return leaf_first_.size(); }
  [[nodiscard]] bool empty() const noexcept { return leaf_first_.empty() && roots_.empty(); }

 private:
  folded::FrameId intern(std::string_view name, std::string_view mark);

  folded::FoldedCounts& counts_;
  std::vector<folded::FrameId> roots_;
  std::vector<folded::FrameId> leaf_first_;
  std::size_t marked_ = 0;  ///< callers that mark_callers() has handled
  std::vector<folded::FrameId> stack_;
};

// The base of the readers that take an input line by line.

class TextCollapser {
 public:
  /// All must outlive this.
  TextCollapser(Input& input, const Options& options, folded::FoldedCounts& counts)
      : lines_(input, report_), options_(options), counts_(counts), stack_(counts) {}

 protected:
  /// Counts the stack as one folded sample.
  void count_stack(std::uint64_t weight, std::uint64_t time_ns = 0) {
    stack_.count(weight, time_ns);
    ++report_.samples;
  }

  TextReport report_;
  TextLines lines_;
  const Options& options_;
  folded::FoldedCounts& counts_;
  StackBuilder stack_;

  template <typename Collapser>
  friend TextReport fold_lines(Input& input, const Options& options, folded::FoldedCounts& counts);
};

/// Folds an input.  `Collapser` derives from TextCollapser, and has take() for each line and end()
/// for the end of the input.
template <typename Collapser>
TextReport fold_lines(Input& input, const Options& options, folded::FoldedCounts& counts) {
  Collapser collapser(input, options, counts);
  TextCollapser& common = collapser;
  while (const auto line = common.lines_.next())
    collapser.take(*line);
  collapser.end();
  return common.report_;
}

}  // namespace pe::fold
