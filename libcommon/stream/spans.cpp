// SPDX-License-Identifier: MIT
#include "stream/spans.h"

#include <fmt/format.h>

#include <algorithm>

#include "stream/user_copy.h"

namespace pe::stream {
namespace {

/// Calls on another stack, such as that of a signal handler or a coroutine, are farther apart than
/// the usual limit of a stack.
constexpr std::uint64_t kMostStackBytes = std::uint64_t{8} << 20U;

bool is_deeper(std::uint64_t stack_pointer, std::uint64_t other) {
  return stack_pointer < other && other - stack_pointer < kMostStackBytes;
}

}  // namespace

std::string describe(const SpanCounts& counts) {
  std::string text;
  const auto add = [&text](std::uint64_t count, std::string_view what) {
    if (count > 0)
      text += fmt::format(", {} {}", count, what);
  };
  add(counts.nested, "recursive inside them");
  add(counts.left, "never returned (longjmp, exceptions)");
  add(counts.lost, "unknown, because records were lost");
  add(counts.ended_with_thread, "ended with their thread");
  add(counts.open, "still open at the end");
  add(counts.began_before,
      "returned from a call before the recording, or by a jump from another function");
  add(counts.not_followed, "entries of too many threads");
  return text;
}

bool Spans::follow(const Record& record, const Session& session) {
  const auto& sample = session.sample();
  if (!sample) {
    const Event* event = session.events().find(record);
    last_ns_ = std::max(last_ns_, event == nullptr ? 0 : time_of(record, event->attr));
    if (const auto& ended = session.history().ended_thread())
      end_thread(ended->tid, last_ns_);
    if (session.loss())
      end_all(SpanEnd::kLost, last_ns_);
    // A thread starts another program, or is new: an earlier one with its number has ended.
    if (const auto& change = session.mapping_change(); change && change->mapped == nullptr)
      end_program(change->pid, last_ns_);
    return false;
  }
  return follow(*sample, *session.event());
}

bool Spans::follow(const Sample& sample, const Event& event) {
  last_ns_ = std::max(last_ns_, sample.time_ns);
  const auto what = span_event(event.name);
  if (!what)
    return false;
  const auto function = index_of(what->function);
  const auto stack_pointer = user_stack_pointer(sample, event.attr.sample_regs_user);
  if (!function || !stack_pointer) {
    ++malformed_;
    return true;
  }
  const Step step{.function = *function,
                  .pid = sample.pid,
                  .tid = sample.tid,
                  .time_ns = sample.time_ns,
                  .stack_pointer = *stack_pointer};
  what->is_return ? leave(step) : enter(step);
  return true;
}

std::optional<std::uint32_t> Spans::index_of(std::string_view function) {
  const auto known = std::find(functions_.begin(), functions_.end(), function);
  if (known != functions_.end())
    return static_cast<std::uint32_t>(known - functions_.begin());
  if (functions_.size() == kMostFunctions)
    return std::nullopt;
  functions_.emplace_back(function);
  counts_.emplace_back();
  return static_cast<std::uint32_t>(functions_.size() - 1);
}

void Spans::enter(const Step& step) {
  SpanCounts& counts = counts_[step.function];
  if (threads_.size() >= kMostThreads && !threads_.contains(step.tid)) {
    ++counts.not_followed;
    return;
  }
  Thread& thread = threads_[step.tid];
  // An earlier call at the same place was left, or its last step was a jump to here.
  leave_deeper(thread, step, step.stack_pointer + 1);
  const bool is_nested = std::any_of(thread.begin(), thread.end(), [&](const Open& outer) {
    return outer.span.function == step.function;
  });
  ++(is_nested ? counts.nested : counts.calls);
  if (is_nested)
    return;
  thread.push_back({.stack_pointer = step.stack_pointer,
                    .span = {.function = step.function,
                             .pid = step.pid,
                             .tid = step.tid,
                             .begin_ns = step.time_ns,
                             .number = ++last_number_}});
}

void Spans::leave(const Step& step) {
  const auto found = threads_.find(step.tid);
  if (found == threads_.end()) {
    ++counts_[step.function].began_before;
    return;
  }
  Thread& thread = found->second;
  leave_deeper(thread, step, step.stack_pointer);
  const auto open = std::find_if(thread.begin(), thread.end(), [&](const Open& other) {
    return other.span.function == step.function;
  });
  if (open == thread.end()) {
    ++counts_[step.function].began_before;
    return;
  }
  if (open->stack_pointer != step.stack_pointer)
    return;  // of a nested call
  end(*open, SpanEnd::kReturned, step.time_ns);
  thread.erase(open);
}

/// Ends the calls on this stack whose stack pointers are below `stack_pointer`.
void Spans::leave_deeper(Thread& thread, const Step& step, std::uint64_t stack_pointer) {
  const auto kept = std::remove_if(thread.begin(), thread.end(), [&](const Open& open) {
    const bool is_left = is_deeper(open.stack_pointer, stack_pointer);
    if (is_left)
      end(open, SpanEnd::kLeft, step.time_ns);
    return is_left;
  });
  thread.erase(kept, thread.end());
}

void Spans::end(const Open& open, SpanEnd how, std::uint64_t time_ns) {
  SpanCounts& counts = counts_[open.span.function];
  counts.left += how == SpanEnd::kLeft ? 1 : 0;
  counts.lost += how == SpanEnd::kLost ? 1 : 0;
  counts.ended_with_thread += how == SpanEnd::kEndedWithThread ? 1 : 0;
  counts.open += how == SpanEnd::kOpen ? 1 : 0;
  Span span = open.span;
  span.end_ns = std::max(span.begin_ns, time_ns);
  on_end_(span, how);
}

void Spans::end_thread(std::uint32_t tid, std::uint64_t time_ns) {
  const auto thread = threads_.find(tid);
  if (thread == threads_.end())
    return;
  for (const Open& open : thread->second)
    end(open, SpanEnd::kEndedWithThread, time_ns);
  threads_.erase(thread);
}

void Spans::end_program(std::uint32_t pid, std::uint64_t time_ns) {
  std::erase_if(threads_, [&](const auto& thread) {
    const Thread& open = thread.second;
    const bool is_its = !open.empty() && open.front().span.pid == pid;
    for (std::size_t i = 0; is_its && i < open.size(); ++i)
      end(open[i], SpanEnd::kEndedWithThread, time_ns);
    return is_its;
  });
}

void Spans::end_all(SpanEnd how, std::uint64_t time_ns) {
  for (const auto& [tid, thread] : threads_)
    for (const Open& open : thread)
      end(open, how, time_ns);
  threads_.clear();
}

void Spans::finish() { end_all(SpanEnd::kOpen, last_ns_); }

}  // namespace pe::stream
