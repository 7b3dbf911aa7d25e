// The lines of a text input, and what is told of those that could not be used.
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

  /// The next line without its end, be that of Unix or of DOS; nullopt at the end.
  /// The view dies with the next call.
  std::optional<std::string_view> next();

  /// Counts `line`, the one that next() returned last, as nothing of the format.
  void ignore(std::string_view line) { ignore(line, line_number(), 1); }
  /// The same for `count` lines, of which `first` was the first, in line `number`.
  void ignore(std::string_view first, std::uint64_t number, std::uint64_t count);

  /// Of the line that next() returned last.
  [[nodiscard]] std::uint64_t line_number() const noexcept { return lines_.line_number(); }

 private:
  Input& input_;
  LineReader lines_;
  TextReport& report_;
};

}  // namespace pe::fold
