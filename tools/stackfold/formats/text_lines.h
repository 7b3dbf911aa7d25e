// Reads the lines of a text input, and counts lines outside of its format.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "base/io/line_reader.h"
#include "stackfold/text_report.h"

namespace pe::fold {

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

}  // namespace pe::fold
