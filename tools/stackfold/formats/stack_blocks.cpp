// Reads stacks as blocks of lines with a count after each block.  DTrace prints them for an
// aggregation by stack, as do bcc's profile, offcputime, stackcount and wakeuptime.
//
//     libc.so.1`__read+0x15          leaf first
//     mysqld`main+0x12
//     -                prog (123)    bcc: the process
//       12                           the count, or microseconds
//
// Blank lines separate the stacks of one key.
// Source: the output of stackcollapse.pl, and the print statements of bcc 0.26.
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/characters.h"
#include "folded/folded_line.h"
#include "stackfold/formats/text.h"
#include "stackfold/frame_text.h"
#include "stackfold/function_name.h"

namespace pe::fold::stack_blocks {
namespace {

struct Process {
  std::string_view comm;
  std::optional<std::uint32_t> pid;
};

/// Parses "-                prog (123)": bcc pads the "-" to 16 columns.
std::optional<Process> parse_process(std::string_view text) {
  if (!text.starts_with("-  "))
    return std::nullopt;
  Process process{trim(text.substr(1)), std::nullopt};
  const auto open = process.comm.rfind(" (");
  if (open != kNone && process.comm.ends_with(')'))
    process.pid =
        parse_number<std::uint32_t>(process.comm.substr(open + 2, process.comm.size() - open - 3));
  if (process.pid)
    process.comm = trim(process.comm.substr(0, open));
  return process;
}

/// Is this a line that DTrace or bcc print between stacks: "  0  64091     :tick-60s",
/// "Tracing ...", "16:00:31"?
bool is_known_note(std::string_view line) {
  constexpr std::string_view kBegins[] = {"dtrace: ", "CPU ",      "Sampling at ", "Tracing ",
                                          "^C",       "Detaching", "Hit Ctrl-C"};
  if (std::any_of(std::begin(kBegins), std::end(kBegins),
                  [line](std::string_view begin) { return line.starts_with(begin); }))
    return true;
  const std::string_view text = trim(line);
  if (text.size() == 8 && text[2] == ':' && text[5] == ':')
    return text.find_first_not_of("0123456789:") == kNone;
  const auto colon = text.find(':');
  return is_indented(line) && colon != kNone && !text.empty() && is_digit(text[0]) &&
         text.substr(0, colon).find_first_not_of("0123456789 ") == kNone;
}

/// Cuts the count from "execname          12", the last of several DTrace keys, and returns it.
std::optional<std::uint64_t> number_behind_gap(std::string_view& text) {
  const auto blank = text.find_last_of(" \t");
  if (blank == kNone || blank == 0 || !is_blank(text[blank - 1]))
    return std::nullopt;
  const auto number = parse_number<std::uint64_t>(text.substr(blank + 1));
  if (number)
    text = trim(text.substr(0, blank));
  return number;
}

class Collapser : public TextCollapser {
 public:
  using TextCollapser::TextCollapser;

  void take(std::string_view line) {
    std::string_view text = trim(line);
    if (const auto count = lone_number(text)) {
      end_stack(*count, line);
      return;
    }
    if (are_notes_ && (text.empty() || is_indented(line)))
      drop_stack();
    if (text.empty() || is_known_note(line))
      return;
    if (pending_lines_++ == 0) {
      are_notes_ = !is_indented(line);
      first_line_ = line.substr(0, kKept);
      first_line_number_ = lines_.line_number();
    }
    const auto process = parse_process(text);
    const auto count = process ? std::nullopt : number_behind_gap(text);
    if (process)
      stack_.add_root(root_of(*process));
    else
      add_frame(text);
    if (count)
      end_stack(*count, line);
  }

  void end() { drop_stack(); }  // its count is missing

 private:
  /// Adds a frame.  Kernel frames come first; "--" follows them (profile -d, offcputime -d).
  void add_frame(std::string_view text) {
    if (text == "--" && options_.marks.kernel)
      stack_.mark_callers("_[k]");
    if (text.starts_with("b'") && text.ends_with('\''))  // from bcc without Python 3 support
      text = text.substr(2, text.size() - 3);
    text = cut_offset(cut_address(text));
    const auto parts = split_inlined(text);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const std::string_view mark = part + 1 == parts.rend() ? "" : "_[i]";
      if (part->find("::") == kNone)
        stack_.add_caller(*part, mark);
      else
        stack_.add_caller(function_name(*part), mark);
    }
  }

  std::string root_of(const Process& process) const {
    const bool with_pid = process.pid && options_.root != RootName::kComm;
    return root_text(process.comm, process.pid.value_or(0), 0,
                     with_pid ? RootName::kCommPid : RootName::kComm);
  }

  void end_stack(std::uint64_t count, std::string_view line) {
    if (stack_.empty()) {
      lines_.ignore(line);
    } else if (count > 0) {
      count_stack(count);
    }
    stack_.clear();
    pending_lines_ = 0;
    are_notes_ = false;
  }

  /// Drops the pending lines, which belong to no stack.
  void drop_stack() {
    lines_.ignore(first_line_, first_line_number_, pending_lines_);
    pending_lines_ = 0;
    stack_.clear();
    are_notes_ = false;
  }

  static constexpr std::size_t kKept = 80;  ///< bytes of a line to keep for a message

  bool are_notes_ = false;  ///< the pending lines are not indented: a count must follow at once
  std::uint64_t pending_lines_ = 0;
  std::string first_line_;
  std::uint64_t first_line_number_ = 0;
};

/// Does the line have columns, as those of a table?  No frame has two blanks between words.
bool has_columns(std::string_view text) {
  return text.find("  ") != kNone || text.find('\t') != kNone;
}

/// Is the rest of the text empty, or does it start with an empty line or one of no frame?
bool is_last_of_block(std::string_view rest) {
  const auto next = take_line(rest);
  return !next || trim(*next).empty() || !is_indented(*next) || is_known_note(*next);
}

enum class LineKind { kNote, kCount, kProcess, kTable, kFrame };

LineKind kind_of(std::string_view line) {
  const std::string_view text = trim(line);
  std::string_view columns = text;
  if (text.empty() || is_known_note(line))
    return LineKind::kNote;
  if (lone_number(text) || (is_indented(line) && number_behind_gap(columns)))
    return LineKind::kCount;
  if (parse_process(text))
    return LineKind::kProcess;
  const bool is_folded = !is_indented(line) && folded::parse_folded_line(line);
  return is_folded || has_columns(text) ? LineKind::kTable : LineKind::kFrame;
}

/// Counts blocks that end in a count.  Other text may have a line of digits only by chance, so most
/// blocks must.
class Census {
 public:
  explicit Census(bool wants_process) : has_process_(!wants_process) {}

  /// Returns false if the text is no list of stacks.
  bool add(std::string_view line, std::string_view rest) {
    const LineKind kind = kind_of(line);
    if (kind == LineKind::kCount)
      return add_count(rest);
    if (kind == LineKind::kTable && ended_ == 0)
      return false;
    if (kind == LineKind::kProcess)
      has_frame_ = has_process_ = true;
    else if (kind != LineKind::kNote)
      add_frame(line);
    return true;
  }
  [[nodiscard]] bool has_stacks() const noexcept { return ended_ > others_; }

 private:
  bool add_count(std::string_view rest) {
    if (!has_frame_ && ended_ == 0)
      return false;
    const bool ends_block = has_frame_ && is_last_of_block(rest);
    (ends_block ? ended_ : others_) += has_process_ ? 1 : 0;
    has_frame_ = has_indented_ = has_frame_ && !(ends_block && has_process_);
    return true;
  }
  void add_frame(std::string_view line) {
    const bool is_without_count = has_indented_ && !is_indented(line);
    others_ += is_without_count && ended_ > 0 ? 1 : 0;
    has_frame_ = true;
    has_indented_ = is_indented(line);
  }

  bool has_process_;
  bool has_frame_ = false, has_indented_ = false;  ///< of a block that has not ended
  std::size_t ended_ = 0, others_ = 0;
};

bool looks_like_blocks(std::string_view head, bool wants_process) {
  Census census(wants_process);
  while (const auto line = take_line(head))
    if (!census.add(*line, head))
      return false;
  return census.has_stacks();
}

}  // namespace

bool looks_like(std::string_view head) { return looks_like_blocks(head, false); }
bool looks_like_bcc(std::string_view head) { return looks_like_blocks(head, true); }

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<Collapser>(input, options, counts);
}

}  // namespace pe::fold::stack_blocks
