// SPDX-License-Identifier: MIT
#include "folded/folded_reader.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
#include "folded/other_input.h"

namespace pe::folded {
namespace {

// The start of the first file, some hundred lines, decides the number of columns.
constexpr std::size_t kLookBytes = 64UL * 1024;
// A recorder that runs may write the rest of that much data only after minutes.
constexpr std::size_t kMagicBytes = 8;

}  // namespace

std::string MalformedLines::describe() const {
  return fmt::format("ignored {} that {} not \"{}\"; first: {}", plural(count, "line"),
                     count == 1 ? "is" : "are",
                     is_two_columns ? "stack count count" : "stack count", first);
}

std::optional<FoldedLine> FoldedReader::next() {
  for (;;) {
    while (lines_) {
      const auto line = lines_->next();
      if (!line) {
        lines_.reset();
        break;
      }
      if (lines_->lacks_newline() && cut_line_.empty())
        cut_line_ = place();
      text_ = *line;
      if (const auto folded = parse_folded_line(*line, *columns_))
        return folded;
      if (is_perl() || !facts_.take(*line))
        note_malformed(*line);
    }
    if (!open_next_file())
      return std::nullopt;
  }
}

bool FoldedReader::open_next_file() {
  if (files_.empty())
    return false;
  input_.emplace(Input::open(files_.front(), stdin_fd_));
  if (!is_perl())
    check_start();
  lines_.emplace(*input_);
  files_ = files_.subspan(1);
  return true;
}

void FoldedReader::check_start() {
  std::string_view head;
  for (const std::size_t bytes : {kMagicBytes, kLookBytes}) {
    const Bytes start = input_->peek(bytes);
    head = {reinterpret_cast<const char*>(start.data()), start.size()};
    if (const auto other = describe_other_input(head); !other.empty())
      throw Error(fmt::format("{}: {}", input_->name(), other));
    input_->skip_byte_order_mark();
  }
  if (!columns_) {
    const bool is_two = has_two_columns(head);
    columns_ = is_two ? Columns::kTwo : Columns::kOne;
    malformed_.is_two_columns = is_two;
  }
}

void FoldedReader::note_malformed(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
    malformed_.has_blank = true;
    return;
  }
  if (malformed_.count++ == 0)
    malformed_.first = fmt::format("{}: {}", place(), in_quotes(line));
}

std::string FoldedReader::place() const {
  return fmt::format("{}:{}", printable(input_->name()), lines_->line_number());
}

}  // namespace pe::folded
