// SPDX-License-Identifier: MIT
#include "stackfold/formats/jstack.h"

#include <algorithm>
#include <string>

#include "base/characters.h"
#include "stackfold/formats/stack_builder.h"
#include "stackfold/formats/text.h"
#include "stackfold/formats/text_lines.h"

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

class Folder {
 public:
  Folder(Input& input, const Options& options, folded::FoldedCounts& counts)
      : lines_(input, report_), options_(options), stack_(counts) {
    report_.folded_event = options.event.value_or("RUNNABLE");
  }

  TextReport fold() {
    while (const auto line = lines_.next())
      take(*line);
    end_thread();
    return report_;
  }

 private:
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
      stack_.count(1);
      ++report_.samples;
    }
    stack_.clear();
    in_thread_ = false;
  }

  TextReport report_;
  TextLines lines_;
  const Options& options_;
  StackBuilder stack_;
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
  return Folder(input, options, counts).fold();
}

}  // namespace pe::fold::jstack
