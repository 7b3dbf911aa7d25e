// SPDX-License-Identifier: MIT
#include "folded/folded_reader.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "base/quote.h"

namespace pe::folded {

std::string MalformedLines::describe() const {
  return fmt::format("ignored {} that {} not \"stack count\"; first: {}", plural(count, "line"),
                     count == 1 ? "is" : "are", first);
}

std::optional<FoldedLine> FoldedReader::next() {
  for (;;) {
    while (lines_) {
      const auto line = lines_->next();
      if (!line) {
        lines_.reset();
        break;
      }
      if (const auto folded = parse_folded_line(*line))
        return folded;
      note_malformed(*line);
    }
    if (!open_next_file())
      return std::nullopt;
  }
}

bool FoldedReader::open_next_file() {
  if (files_.empty())
    return false;
  input_.emplace(io::Input::open(files_.front(), stdin_fd_));
  lines_.emplace(*input_);
  files_ = files_.subspan(1);
  return true;
}

void FoldedReader::note_malformed(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos)
    return;
  if (malformed_.count++ == 0)
    malformed_.first =
        fmt::format("{}:{}: {}", input_->name(), lines_->line_number(), quoted(line));
}

}  // namespace pe::folded
