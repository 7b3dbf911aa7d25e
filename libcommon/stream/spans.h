// Pairs the entries and returns of a function: a call of it is a span of its thread's time.
//
// A sample of the event "span:FUNC" is an entry, one of "span-return:FUNC" a return (pe-stream(5)).
// Each has the stack pointer at the entry of its call, because some calls never return: longjmp()
// and exceptions leave them.  A thread that enters or leaves a function has left all calls whose
// stack pointers are lower.
//
// Recursive calls are one span, that of the outermost call, so each thread has at most one span of
// a function.  The same is true for a call on another stack, such as that of a signal handler.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stream/session.h"

namespace pe::stream {

enum class SpanEnd : std::uint8_t {
  kReturned,
  kEndedWithThread,  ///< the thread ended, or started another program
  kOpen,             ///< the recording ended first
  kLeft,             ///< by longjmp() or an exception, at an unknown time before `end_ns`
  kLost,             ///< records were lost, perhaps that of its return
};

/// Is the end of the call known?  That of an open call is the end of the recording.
inline bool has_known_length(SpanEnd end) noexcept {
  return end != SpanEnd::kLeft && end != SpanEnd::kLost;
}

struct Span {
  std::uint32_t function = 0;  ///< an index into Spans::functions()
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t number = 0;  ///< of all spans, in the order of their entries
};

/// The calls of a function.
struct SpanCounts {
  std::uint64_t calls = 0;              ///< spans that have started
  std::uint64_t nested = 0;             ///< recursive calls inside of them
  std::uint64_t left = 0;               ///< spans that never returned
  std::uint64_t lost = 0;               ///< spans during which records were lost
  std::uint64_t ended_with_thread = 0;  ///< spans
  std::uint64_t open = 0;               ///< spans that outlasted the recording
  std::uint64_t began_before = 0;       ///< returns without an entry
  std::uint64_t not_followed = 0;       ///< entries and returns that exceed the limits
};

/// Returns all of them but `calls`: ", 2 recursive calls inside of them, 1 still open at the end";
/// empty if there are none.
std::string describe(const SpanCounts& counts);

class Spans {
 public:
  static constexpr std::size_t kMostThreads = 65'536, kMostFunctions = 1'000;

  /// Calls `on_end` once for each span.
  using OnEnd = std::function<void(const Span&, SpanEnd)>;
  explicit Spans(OnEnd on_end) : on_end_(std::move(on_end)) {}

  /// Follows a record, which the session has applied.  Returns whether it is an entry or a return.
  bool follow(const Record& record, const Session& session);
  /// Follows a sample of an event.  Returns whether it is an entry or a return.
  bool follow(const Sample& sample, const Event& event);
  /// The recording has ended: ends all spans.
  void finish();

  /// An event of a call.
  struct Step {
    std::uint32_t function, pid, tid;
    std::uint64_t time_ns, stack_pointer;
  };
  /// These are the parts of follow().
  void enter(const Step& step);
  void leave(const Step& step);
  void end_thread(std::uint32_t tid, std::uint64_t time_ns);
  void end_program(std::uint32_t pid, std::uint64_t time_ns);
  /// Ends all spans.
  void end_all(SpanEnd how, std::uint64_t time_ns);

  /// Calls `visit(const Span&)` for each open span of a thread, whose end is not known.
  template <typename Visit>
  void for_each_open(std::uint32_t tid, Visit&& visit) const {
    if (const auto thread = threads_.find(tid); thread != threads_.end())
      for (const Open& open : thread->second)
        visit(open.span);
  }

  /// Returns the index of a function, which is new if it was not read before; nullopt if there are
  /// too many.
  std::optional<std::uint32_t> index_of(std::string_view function);
  /// Returns the functions, as the user wrote them.
  [[nodiscard]] const std::vector<std::string>& functions() const noexcept { return functions_; }
  [[nodiscard]] const SpanCounts& counts(std::size_t function) const { return counts_[function]; }
  /// Returns the number of entries and returns without a number of their own, or a stack pointer.
  [[nodiscard]] std::uint64_t malformed() const noexcept { return malformed_; }

 private:
  struct Open {
    std::uint64_t stack_pointer;
    Span span;
  };
  using Thread = std::vector<Open>;  ///< at most one of each function

  void leave_deeper(Thread& thread, const Step& step, std::uint64_t stack_pointer);
  void end(const Open& open, SpanEnd how, std::uint64_t time_ns);

  OnEnd on_end_;
  std::vector<std::string> functions_;
  std::vector<SpanCounts> counts_;                     ///< of each function
  std::unordered_map<std::uint32_t, Thread> threads_;  ///< by tid
  std::uint64_t last_number_ = 0, last_ns_ = 0, malformed_ = 0;
};

}  // namespace pe::stream
