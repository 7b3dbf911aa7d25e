// SPDX-License-Identifier: MIT
#include "folded/folded_reader.h"

#include <fmt/format.h>

#include <span>

#include "base/error.h"
#include "base/text.h"

namespace pe::folded {
namespace {

struct Mark {
  std::string_view text;
  std::string_view what;
};

constexpr std::string_view kStream =
    "a sample stream or perf.data file, not folded text (fold it: pe-symbolize FILE | stackfold)";
constexpr std::string_view kPprof = "a pprof profile, not folded text (fold it: stackfold FILE)";

constexpr Mark kUnreadable[] = {
    {"\x7f"
     "ELF",
     "a program, not a profile (record it: stackpipe record -o FILE.folded -- PROGRAM)"},
    {"\x28\xb5\x2f\xfd", "compressed by zstd (unpack it: zstd -dc FILE)"},  // RFC 8878, 3.1.1
    {"\xff\xfe", "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 FILE)"},
    {"\xfe\xff", "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 FILE)"},
};

constexpr std::string_view kPage =
    "a page, not folded text (the profile of a flame graph of flamesvg: stackfold FILE)";

constexpr Mark kStarts[] = {
    {"<?xml", kPage},
    {"<svg", kPage},
    {"<!DOCTYPE", kPage},
    {"PERFILE2", kStream},
    {"2ELIFREP", kStream},  // of a machine with the other byte order
    {"\x1f\x8b",
     "compressed by gzip (fold a pprof profile: stackfold FILE; unpack folded text: gzip -dc "
     "FILE)"},
    // profile.proto: the first sample type, which has the strings 1 and 2 in nearly all profiles.
    {"\x0a\x04\x08\x01\x10\x02", kPprof},
};

/// Returns the description of the mark with which `head` starts; empty if it has none.
std::string_view find_start(std::string_view head, std::span<const Mark> marks) {
  for (const Mark& mark : marks)
    if (head.starts_with(mark.text))
      return mark.what;
  return {};
}

/// Does the text have the head of the table in which GHC's runtime prints a profile?
bool has_ghc_table(std::string_view head) {
  constexpr std::string_view kTable = "\nCOST CENTRE";
  const auto start = head.find(kTable);
  if (start == std::string_view::npos)
    return false;
  const std::string_view line = head.substr(start + 1, head.find('\n', start + 1) - start - 1);
  return line.find("%time") != std::string_view::npos;
}

}  // namespace

std::string_view describe_unreadable(std::string_view head) {
  return find_start(head, kUnreadable);
}

std::string_view describe_other_input(std::string_view head) {
  for (const std::span<const Mark> marks :
       {std::span<const Mark>(kUnreadable), std::span<const Mark>(kStarts)})
    if (const auto what = find_start(head, marks); !what.empty())
      return what;
  if (has_ghc_table(head))
    return "a profile of GHC, not folded text (fold it: stackfold FILE)";
  return {};
}

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
  // The last line may be cut.
  const bool is_whole = head.size() < kLookBytes;
  check_lines(is_whole ? head : head.substr(0, head.rfind('\n') + 1));
}

void FoldedReader::check_lines(std::string_view head) const {
  constexpr std::size_t kLeast = 10;  // fewer may be the broken lines of a short profile
  const LineCounts lines = count_lines(head);
  if (lines.others < kLeast || lines.others * 2 <= lines.all)
    return;
  throw Error(fmt::format(
      "{}: not folded text: {} of the first {} do not end in a count; first: {} (fold a "
      "profiler's text with stackfold first)",
      printable(input_->name()), lines.others, plural(lines.all, "line"),
      in_quotes(lines.first_other)));
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
