// Reads the thread dumps of jstack, and of a Java VM that got SIGQUIT.  Each running thread is a
// stack with the count 1.
//
//   "worker-1" #12 prio=5 ... nid=0x2f5a runnable  [0x00007f3c7519c000]
//      java.lang.Thread.State: RUNNABLE
//   	at Busy.hash(Busy.java:4)
//   	- locked <0x0000000694c03030> (a Lock)
//
// Source: jstack of OpenJDK 8 to 21, and the output of stackcollapse-jstack.pl.
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/characters.h"
#include "base/text.h"
#include "stackfold/formats/text.h"

namespace pe::fold::jstack {
namespace {

/// Is this a native method in which a thread waits?  The VM reports such a thread as RUNNABLE,
/// which only means that Java code does not block it.
bool waits(std::string_view method) {
  constexpr std::string_view kEndings[] = {".epollWait",          ".EPoll.wait",
                                           ".KQueue.poll",        ".kevent0",
                                           ".WEPoll.wait",        ".poll0",
                                           ".Net.poll",           ".Net.accept",
                                           ".socketAccept",       ".accept0",
                                           ".socketRead0",        ".waitForReferencePendingList",
                                           ".Unsafe.park",        ".Object.wait",
                                           ".Object.wait0",       ".Thread.sleep",
                                           ".Thread.sleep0",      ".waitForProcessExit",
                                           ".waitForProcessExit0"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [method](std::string_view ending) { return method.ends_with(ending); });
}

/// Cuts the number from "worker-12" or "pool-1-thread-12": all threads of a pool get one name.
std::string_view without_number(std::string_view name) {
  const auto* const digits = std::find_if_not(name.rbegin(), name.rend(), is_digit).base();
  const auto end = static_cast<std::size_t>(digits - name.begin());
  return end > 1 && end < name.size() && name[end - 1] == '-' ? name.substr(0, end - 1) : name;
}

/// Returns class and method of "java.base@17.0.15/java.lang.Thread.run(Thread.java:840)".
std::string_view method_of(std::string_view text) { return trim(text.substr(0, text.find('('))); }

class Collapser : public TextCollapser {
 public:
  Collapser(Input& input, const Options& options, folded::FoldedCounts& counts)
      : TextCollapser(input, options, counts) {
    report_.folded_event = options.event.value_or("RUNNABLE");
  }

  void take(std::string_view line) {
    const std::string_view text = trim(line);
    constexpr std::string_view kState = "java.lang.Thread.State: ";
    if (line.starts_with('"')) {
      begin_thread(line);
    } else if (text.empty()) {
      end_thread();
    } else if (in_thread_ && text.starts_with(kState)) {
      const std::string_view state = text.substr(kState.size());
      state_ = state.substr(0, state.find(' '));  // without "(sleeping)"
    } else if (in_thread_ && text.starts_with("at ")) {
      const std::string_view method = method_of(text.substr(3));
      if (stack_.callers() == 0 && state_ == "RUNNABLE" && waits(method))
        state_ = "WAITING";
      stack_.add_caller(method);
    } else if (!is_note(line, text)) {
      lines_.ignore(line);
    }
  }

  void end() { end_thread(); }

 private:
  /// Is this a known line outside of stacks: locks, the list of threads, the heap, dates?
  [[nodiscard]] bool is_note(std::string_view line, std::string_view text) const {
    if (in_thread_ || is_indented(line) || is_digit(line[0]))
      return true;
    constexpr std::string_view kBegins[] = {"Full thread dump",
                                            "Threads class SMR",
                                            "_java_thread_list",
                                            "}",
                                            "JNI global ref",
                                            "Heap",
                                            "Found ",
                                            "Java stack",
                                            "==="};
    return std::any_of(std::begin(kBegins), std::end(kBegins),
                       [text](std::string_view begin) { return text.starts_with(begin); });
  }

  void begin_thread(std::string_view line) {
    end_thread();
    const auto close = line.rfind('"');
    if (close == 0)
      return lines_.ignore(line);
    in_thread_ = true;
    name_ = line.substr(1, close - 1);
    if (options_.root == RootName::kComm)
      name_ = without_number(name_);
    state_.clear();
  }

  /// Ends a thread, and counts it if it has a stack and a state.  Internal threads of the VM are
  /// RUNNABLE without a stack: they run no Java.  The dump repeats deadlocked threads without a
  /// state.
  void end_thread() {
    const bool is_stack = in_thread_ && stack_.callers() > 0 && !state_.empty();
    if (is_stack && report_.takes_event(options_, state_)) {
      if (options_.all_events)
        stack_.add_root(state_);
      stack_.add_root(name_);
      count_stack(1);
    }
    stack_.clear();
    in_thread_ = false;
  }

  std::string name_;
  std::string state_;
  bool in_thread_ = false;
};

}  // namespace

bool looks_like(std::string_view head) {
  bool has_thread = false;
  while (const auto line = take_line(head)) {
    if (line->starts_with("Full thread dump ") ||
        (has_thread && trim(*line).starts_with("java.lang.Thread.State: ")))
      return true;
    has_thread = line->starts_with('"');
  }
  return false;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<Collapser>(input, options, counts);
}

}  // namespace pe::fold::jstack

// Reads the output of bcc's memleak: allocations not yet freed, by stack.
//
//   [11:16:33] Top 10 stacks with outstanding allocations:
//   	80 bytes in 5 allocations from stack
//   		0x0000000000400a1d	main+0x6d [prog]       leaf first
//
// memleak prints such a report repeatedly.  Allocations outstanding in one report are usually in
// the next one as well, so only the last report is folded.
//
// Source: the print statements of bcc 0.26.

namespace pe::fold::memleak {
namespace {

constexpr std::string_view kBytesIn = " bytes in ";
constexpr std::string_view kAllocations = " allocations from stack";

struct Outstanding {
  std::uint64_t bytes, allocations;
};

/// Parses "	80 bytes in 5 allocations from stack".
std::optional<Outstanding> parse_outstanding(std::string_view line) {
  line = trim(line);
  const auto in = line.find(kBytesIn);
  if (in == kNone || !line.ends_with(kAllocations))
    return std::nullopt;
  const auto begin = in + kBytesIn.size();
  const auto bytes = lone_number(line.substr(0, in));
  const auto allocations =
      lone_number(line.substr(begin, line.size() - kAllocations.size() - begin));
  return bytes && allocations ? std::optional(Outstanding{*bytes, *allocations}) : std::nullopt;
}

bool begins_report(std::string_view line) {
  return line.starts_with('[') && line.ends_with(" stacks with outstanding allocations:");
}

/// Returns "main" for "0x0000000000400a1d	main+0x6d [prog]".
std::string_view frame_name(std::string_view line) {
  std::string_view name = trim(line);
  if (name.starts_with("0x"))
    name = cut_address(name.substr(2));
  const auto module = name.rfind(" [");
  if (module != kNone && module > 0 && name.ends_with(']'))
    name = name.substr(0, module);
  return cut_offset(name);
}

class Collapser : public TextCollapser {
 public:
  Collapser(Input& input, const Options& options, folded::FoldedCounts& counts)
      : TextCollapser(input, options, counts) {
    const std::string event = options.event.value_or("bytes");
    bytes_ = options.all_events || event == "bytes";
    allocations_ = options.all_events || event == "allocations";
    if (!bytes_ && !allocations_)
      report_.damage = "no event of that name (it has bytes, allocations)";
    begin_report();
  }

  void end() {
    end_stack();
    counts_.add_divided(*last_, 1);
    if (reports_ > 1)
      report_.left_out = plural(reports_ - 1, "earlier report") + " left out";
  }

  void take(std::string_view line) {
    if (begins_report(line)) {
      end_stack();
      begin_report();
      ++reports_;
    } else if (const auto outstanding = parse_outstanding(line)) {
      end_stack();
      outstanding_ = outstanding;
    } else if (outstanding_ && is_indented(line)) {
      add_frame(line);
    } else if (!trim(line).empty() && !line.starts_with("Attaching to ") && !is_address(line)) {
      lines_.ignore(line);
    }
  }

 private:
  /// Is this a line of memleak -a: "	addr = 7f12 size = 8"?
  static bool is_address(std::string_view line) { return trim(line).starts_with("addr = "); }

  void begin_report() {
    stack_.reset();
    last_.emplace(counts_.frames());
    stack_.emplace(*last_);
    report_.samples = 0;
  }

  void add_frame(std::string_view line) { frames_.emplace_back(frame_name(line)); }

  void end_stack() {
    if (outstanding_) {
      if (bytes_)
        count("bytes", outstanding_->bytes);
      if (allocations_)
        count("allocations", outstanding_->allocations);
      ++report_.samples;
    }
    outstanding_.reset();
    frames_.clear();
  }

  void count(std::string_view event, std::uint64_t weight) {
    if (weight == 0)
      return;
    if (options_.all_events)
      stack_->add_root(event);
    for (const std::string& frame : frames_)
      stack_->add_caller(frame);
    stack_->count(weight);
  }

  bool bytes_ = false;
  bool allocations_ = false;
  std::optional<folded::FoldedCounts> last_;  ///< counts of the last report
  std::optional<StackBuilder> stack_;         ///< adds to last_
  std::optional<Outstanding> outstanding_;    ///< of the current stack
  std::vector<std::string> frames_;           ///< leaf first
  std::uint64_t reports_ = 0;
};

}  // namespace

bool looks_like(std::string_view head) { return has_line(head, begins_report); }

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<Collapser>(input, options, counts);
}

}  // namespace pe::fold::memleak
