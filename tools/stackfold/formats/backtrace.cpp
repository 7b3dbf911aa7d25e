// Reads backtraces of all threads: gdb's "thread apply all bt" (pstack and gstack print the same)
// and eu-stack.  Each backtrace is a stack with the count 1.
//
//   Thread 2 (Thread 0x7f44 (LWP 12041) "worker"):
//   #0  0x00007f4451 in usleep (useconds=5) at usleep.c:31
//   #1  main () from /lib/libx.so
//
//   TID 12041:
//   #0  0x00007f44512ed545     __nanosleep - /lib/libc.so.6
//       ../sysdeps/nanosleep.c:48:7
//   #1  0x0000558a2044739c - 1 thread_main - /usr/bin/prog
//
// Source: gdb 13 and eu-stack 0.188, by running them.
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/characters.h"
#include "stackfold/formats/text.h"
#include "stackfold/function_name.h"

namespace pe::fold::backtrace {
namespace {

struct Frame {
  std::string_view number;
  std::string_view rest;  ///< the text after it, trimmed
};

/// Parses "#12 0x... in main () at x.c:1".
std::optional<Frame> parse_frame(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#'))
    return std::nullopt;
  const auto* const end = std::find_if_not(line.begin() + 1, line.end(), is_digit);
  const auto digits = static_cast<std::size_t>(end - line.begin());
  if (digits == 1 || digits == line.size() || !is_blank(line[digits]))
    return std::nullopt;
  return Frame{line.substr(1, digits - 1), trim(line.substr(digits))};
}

/// Cuts off an address, "0x00007f44512ed545", and returns it; empty if the text has none.
std::string_view take_address(std::string_view& text) {
  if (!text.starts_with("0x"))
    return {};
  const auto end = std::min(text.find_first_not_of("0123456789abcdefABCDEF", 2), text.size());
  if (end < text.size() && !is_blank(text[end]))
    return {};
  const std::string_view address = text.substr(0, end);
  text = text.substr(end);
  return address;
}

/// Cuts the module that eu-stack -m prints from "main - /usr/bin/prog"; empty if nothing else is
/// left.
std::string_view without_module(std::string_view name) {
  if (name.starts_with("- ") && name.size() > 2 && (name[2] == '/' || name[2] == '['))
    return {};
  constexpr std::string_view kDash = " - ";
  for (auto dash = name.find(kDash); dash != kNone; dash = name.find(kDash, dash + 1)) {
    const std::string_view module = name.substr(dash + kDash.size());
    if (module.starts_with('/') || module.starts_with('[') || module.starts_with("linux-vdso"))
      return name.substr(0, dash);
  }
  return name;
}

std::string eu_stack_function(std::string_view text) {
  text = trim(text);
  if (text.starts_with("- 1 "))  // eu-stack -v: the address follows the call
    text = trim(text.substr(4));
  return std::string(without_module(text));
}

bool is_eu_stack_thread(std::string_view line) {
  return line.starts_with("TID ") && line.ends_with(':');
}
bool is_gdb_thread(std::string_view line) {
  return line.starts_with("Thread ") && (line.ends_with(':') || line.find(" (") != kNone);
}

class Collapser : public TextCollapser {
 public:
  using TextCollapser::TextCollapser;

  void take(std::string_view line) {
    if (const auto frame = parse_frame(line)) {
      if (frame->number.find_first_not_of('0') == kNone)  // "#0"
        end_stack();
      add_frame(frame->rest);
    } else if (is_eu_stack_thread(line) || is_gdb_thread(line)) {
      end_stack();
    } else if (trim(line).starts_with('#')) {
      lines_.ignore(line);
    }
    // Other lines carry no stack: places and variables of a frame, banners, warnings, prompts.
  }
  void end() { end_stack(); }

 private:
  /// The caller's line shows whether a function is inlined: gdb prints no address in that line,
  /// and eu-stack prints the same address again.  eu-stack also repeats the address for a function
  /// that calls itself, so the names must differ.
  void add_frame(std::string_view text) {
    std::string name = function_of(text);
    const std::string_view address = take_address(text);
    const bool is_same_call = address == address_ && name != name_;
    const bool is_inlined = has_address_ && (address.empty() || is_same_call);
    if (in_stack_)
      stack_.add_caller(name_, is_inlined && options_.marks.inlined ? "_[i]" : "");
    in_stack_ = true;
    has_address_ = has_address_ || !address.empty();
    name_ = std::move(name);
    address_ = address;
  }

  void end_stack() {
    if (!in_stack_)
      return;
    stack_.add_caller(name_);
    count_stack(1);
    in_stack_ = has_address_ = false;
  }

  bool in_stack_ = false;
  bool has_address_ = false;    ///< of any frame of the stack
  std::string name_, address_;  ///< of the previous frame, which is not yet in stack_
};

/// Does a frame follow the line of a thread?
template <typename IsThread>
bool has_thread_then_frame(std::string_view head, IsThread&& is_thread) {
  bool has_thread = false;
  while (const auto line = take_line(head)) {
    if (is_thread(*line))
      has_thread = true;
    else if (has_thread && parse_frame(*line))
      return true;
  }
  return false;
}

}  // namespace

std::string function_of(std::string_view frame) {
  std::string_view text = frame;
  const bool has_address = !take_address(text).empty();
  if (has_address && !trim(text).starts_with("in "))
    return eu_stack_function(text);
  text = has_address ? trim(text).substr(3) : text;
  if (text.starts_with('<'))  // "<signal handler called>"
    return std::string(text);
  return function_name(without_arguments(text));
}

bool looks_like_eu_stack(std::string_view head) {
  return has_thread_then_frame(head, is_eu_stack_thread);
}

bool looks_like_gdb(std::string_view head) {
  // A plain "bt" prints no line of a thread.
  std::string_view first = head;
  while (const auto line = take_line(first)) {
    const auto frame = parse_frame(*line);
    if (frame && frame->number == "0")
      return frame->rest.starts_with("0x") || frame->rest.find(" (") != kNone;
    if (!trim(*line).empty() && !line->starts_with('['))
      break;
  }
  return has_thread_then_frame(head, is_gdb_thread);
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<Collapser>(input, options, counts);
}

}  // namespace pe::fold::backtrace
