// Reads the maps that bpftrace prints when it exits, or by print():
//
//   @cpu[
//       work::hash(int)+39            leaf first, indented
//       main+158
//   , 12, prog]: 35                   the rest of the key, the count
//
// Source: bpftrace 0.17 to 0.21, by running it.
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/characters.h"
#include "base/text.h"
#include "folded/folded_line.h"
#include "stackfold/formats/text.h"

namespace pe::fold::bpftrace {
namespace {

/// Returns the end of "@name"; 0 if the line does not start a map.
std::size_t map_name_end(std::string_view line) {
  if (!line.starts_with('@'))
    return 0;
  const auto* const end = std::find_if_not(line.begin() + 1, line.end(), is_word);
  return static_cast<std::size_t>(end - line.begin());
}

/// Is this a line of a histogram: "[16, 32)      3 |@@@", "(..., 0)", "[1]"?
bool is_bucket(std::string_view line) {
  return (line.starts_with('[') || line.starts_with('(')) && line.find('|') != kNone;
}

/// Is this line the outermost frame of a kernel stack?  The text does not mark it, so this is a
/// heuristic: it checks the address if there is one, else the name.  The name misleads if the
/// stack was cut before its end.
bool is_kernel_entry(std::string_view line, std::string_view frame) {
  constexpr std::size_t kDigits = 16;
  if (line.starts_with("ffff") && line.find_first_not_of("0123456789abcdef") == kDigits)
    return true;
  constexpr std::string_view kEntries[] = {
      "entry_", "asm_",  "ret_from_fork",    "secondary_startup",
      "el0t_",  "el1h_", "ret_from_syscall", "common_startup",
      "el0_",   "el1_",  "ret_to_user"};
  return std::any_of(std::begin(kEntries), std::end(kEntries),
                     [frame](std::string_view entry) { return frame.starts_with(entry); });
}

/// Returns the name in "name+39", or in the form of perf, "\t7f44512a71f5 name+39 (/bin/file)".
std::string_view frame_name(std::string_view line) {
  const std::string_view text = trim(line);
  std::string_view name = cut_address(text);
  const auto module = name.rfind(" (");
  if (name.size() != text.size() && name.ends_with(')') && module != kNone)
    name = name.substr(0, module);
  return cut_offset(name);
}

class Collapser : public TextCollapser {
 public:
  Collapser(Input& input, const Options& options, folded::FoldedCounts& counts)
      : TextCollapser(input, options, counts) {
    if (options.event)
      report_.folded_event = (options.event->starts_with('@') ? "" : "@") + *options.event;
  }

  void end() {
    if (in_key_)  // the input ends within a key
      drop_key(map_);
    if (left_out_ > 0)
      report_.left_out =
          fmt::format("{} without a stack or a count left out",
                      left_out_ == 1 ? "1 map entry" : fmt::format("{} map entries", left_out_));
  }

  void take(std::string_view line) {
    if (const std::size_t end = map_name_end(line); end > 0) {
      if (in_key_)
        drop_key(line);
      begin(line.substr(0, end), line.substr(end));
    } else if (in_key_ && is_indented(line)) {
      add_frame(line);
    } else if (in_key_ && (line.starts_with(", ") || line.starts_with(']'))) {
      end_stack();
      take_key(line.starts_with(']') ? line : line.substr(2));
    } else if (!trim(line).empty() && !line.starts_with("Attaching ") &&
               !(in_histogram_ && is_bucket(line))) {
      lines_.ignore(line);
    }
  }

  void begin(std::string_view name, std::string_view rest) {
    map_ = name;
    in_histogram_ = false;
    if (rest.starts_with('[')) {
      in_key_ = true;
      take_key(rest.substr(1));
    } else if (rest.starts_with(':')) {
      ++left_out_;
      in_histogram_ = trim(rest.substr(1)).empty();
    } else {
      lines_.ignore(rest);
    }
  }

  /// Reads a piece of the key: "12, prog, " before a stack, "prog]: 35" after the last one.
  void take_key(std::string_view text) {
    const auto close = text.rfind("]: ");
    take_labels(text.substr(0, close));
    if (close != kNone)
      end_key(trim(text.substr(close + 3)));
  }

  /// Reads the labels of a key.  An empty label is a stack without frames.
  void take_labels(std::string_view text) {
    for (;;) {
      const auto comma = text.find(", ");
      const std::string_view label = trim(text.substr(0, comma));
      if (!label.empty())
        labels_.emplace_back(label);
      else if (comma != kNone)
        has_stack_ = true;
      if (comma == kNone)
        break;
      text.remove_prefix(comma + 2);
    }
  }

 private:
  void add_frame(std::string_view line) {
    const std::string_view name = frame_name(line);
    stack_.add_caller(name);
    outermost_is_kernel_ = is_kernel_entry(trim(line), name);
    has_stack_ = true;
  }

  /// Puts the kernel's stack on top of the process's, whatever their order in the key.
  void end_stack() {
    const std::size_t frames = stack_.callers() - ended_frames_;
    if (frames == 0)
      return;
    if (outermost_is_kernel_) {
      stack_.mark_callers(options_.marks.kernel ? "_[k]" : "");
      if (ended_frames_ > 0 && !last_was_kernel_)
        stack_.rotate_callers(frames);
    } else {
      stack_.mark_callers("");
    }
    last_was_kernel_ = outermost_is_kernel_;
    ended_frames_ = stack_.callers();
  }

  void end_key(std::string_view value) {
    in_histogram_ = value.empty();
    const auto count = parse_number<std::uint64_t>(value);
    if (!has_stack_ || !count) {
      ++left_out_;
    } else if (report_.takes_event(options_, map_) && *count > 0) {
      if (options_.all_events)
        stack_.add_root(map_);
      for (const std::string& label : labels_)
        stack_.add_root(label);
      count_stack(*count);
    }
    forget_key();
  }

  /// Drops a key that has not ended before `line`.
  void drop_key(std::string_view line) {
    lines_.ignore(line);
    forget_key();
  }

  void forget_key() {
    in_key_ = has_stack_ = last_was_kernel_ = false;
    ended_frames_ = 0;
    labels_.clear();
    stack_.clear();
  }

  std::string map_;  ///< "@name"
  std::vector<std::string> labels_;
  bool in_key_ = false;
  bool has_stack_ = false;
  bool outermost_is_kernel_ = false;  ///< of the current stack
  bool last_was_kernel_ = false;      ///< the previous stack of the key
  std::size_t ended_frames_ = 0;      ///< number of callers in the finished stacks
  bool in_histogram_ = false;
  std::uint64_t left_out_ = 0;
};

}  // namespace

bool looks_like(std::string_view head) {
  while (const auto line = take_line(head)) {
    const std::size_t end = map_name_end(*line);
    if (end > 0 && (line->substr(end).starts_with('[') || line->substr(end).starts_with(": ")) &&
        !folded::parse_folded_line(line->substr(0, line->find(": "))))
      return true;
    if (line->starts_with("Attaching ") && line->find(" probe") != kNone)
      return true;
    if (!is_indented(*line) && folded::parse_folded_line(*line))
      return false;
  }
  return false;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<Collapser>(input, options, counts);
}

}  // namespace pe::fold::bpftrace
