// SPDX-License-Identifier: MIT
#include "recording/waits/wait_tracker.h"

#include <algorithm>
#include <utility>

namespace pe::waits {
Stack stack_of(const stream::Sample& sample, std::uint16_t misc) {
  Stack stack{.ip = sample.ip,
              .misc = static_cast<std::uint16_t>(
                  misc & (PERF_RECORD_MISC_CPUMODE_MASK | stream::kMiscWalked)),
              .cpu = sample.cpu};
  stack.chain.resize(sample.callchain.size());
  for (std::size_t i = 0; i < stack.chain.size(); ++i)
    stack.chain[i] = sample.callchain[i];
  return stack;
}

WaitTracker::WaitTracker(WaitChoice choice, OnWait on_wait)
    : choice_(std::move(choice)), on_wait_(std::move(on_wait)) {}

Stack* WaitTracker::sample(const stream::Sample& sample, std::uint16_t misc, char state) {
  if (is_nobody(sample.tid))
    return nullptr;
  Thread& thread = threads_[sample.tid];
  thread.has_stack = true;
  thread.state = state;
  thread.stack = stack_of(sample, misc);
  return &thread.stack;
}

void WaitTracker::switched(const stream::SwitchRecord& change) {
  if (is_nobody(change.tid))
    return;
  Thread& thread = threads_[change.tid];
  if (thread.phase == Phase::kEnded)
    return;  // it stops running for the last time
  if (change.is_out) {
    counts_.dropped += thread.phase == Phase::kWaiting && !thread.is_presumed ? 1 : 0;
    begin_wait(thread, change);
    return;
  }
  counts_.began_before += thread.phase == Phase::kUnknown ? 1 : 0;
  counts_.dropped += thread.phase == Phase::kRunning ? 1 : 0;
  if (thread.phase == Phase::kWaiting)
    end_wait(thread, change.tid, change.time_ns, false);
  thread.phase = Phase::kRunning;
  thread.has_stack = false;
}

void WaitTracker::begin_wait(Thread& thread, const stream::SwitchRecord& change) {
  thread.phase = Phase::kWaiting;
  thread.pid = change.pid;
  thread.out_ns = change.time_ns;
  thread.woken_ns = 0;
  thread.is_presumed = false;
  thread.is_preempted = change.is_preempted;
  thread.is_doubtful = change.time_ns <= doubtful_until_ns_;
  thread.is_stackless = !std::exchange(thread.has_stack, false);
  if (thread.is_stackless) {
    thread.stack.chain.clear();
    thread.state = '?';
    thread.kind = stream::WaitKind::kOther;
  }
}

void WaitTracker::woken(std::uint32_t tid, std::uint64_t time_ns) {
  const auto thread = threads_.find(tid);
  if (thread != threads_.end() && thread->second.phase == Phase::kWaiting)
    thread->second.woken_ns = time_ns;
}

void WaitTracker::waits_since(std::uint32_t pid, std::uint32_t tid, std::uint64_t began_ns,
                              stream::WaitKind kind) {
  if (!threads_.contains(tid))
    threads_[tid] = {.phase = Phase::kWaiting,
                     .is_presumed = true,
                     .kind = kind,
                     .pid = pid,
                     .out_ns = began_ns,
                     .stack = {.misc = PERF_RECORD_MISC_USER}};
}

bool WaitTracker::is_chosen(const Thread& thread, std::uint64_t length_ns) const {
  if (length_ns < choice_.min_ns || length_ns > choice_.max_ns)
    return false;
  if (!choice_.states.empty())
    return choice_.states.find(thread.is_preempted ? 'R' : thread.state) != std::string::npos;
  return choice_.with_preempted || !thread.is_preempted;
}

void WaitTracker::end_wait(Thread& thread, std::uint32_t tid, std::uint64_t end_ns,
                           bool is_unfinished) {
  thread.phase = Phase::kRunning;
  thread.has_stack = false;
  const std::uint64_t length_ns = end_ns - std::min(end_ns, thread.out_ns);
  if (thread.is_doubtful) {
    ++counts_.dropped;
  } else if (!choice_.states.empty() && thread.state == '?' && !thread.is_preempted) {
    ++counts_.stateless;
  } else if (is_chosen(thread, length_ns)) {
    ++counts_.waits;
    counts_.total_ns += length_ns;
    counts_.unfinished += is_unfinished ? 1 : 0;
    counts_.stackless += has_samples_ && thread.is_stackless ? 1 : 0;
    Wait wait{thread.pid, tid, end_ns, length_ns, thread.stack, is_unfinished};
    wait.weight =
        static_cast<std::uint64_t>(thread.is_preempted ? stream::WaitKind::kReady : thread.kind);
    wait.woken_ns = thread.is_preempted ? thread.out_ns
                    : thread.woken_ns   ? thread.woken_ns
                                        : end_ns;
    on_wait_(wait);
  }
}

void WaitTracker::forked(std::uint32_t tid) { threads_[tid] = {.phase = Phase::kNew, .stack = {}}; }

void WaitTracker::forked(std::uint32_t pid, std::uint32_t tid, std::uint64_t time_ns) {
  threads_[tid] = {.phase = Phase::kWaiting,
                   .is_preempted = true,
                   .is_presumed = true,
                   .pid = pid,
                   .out_ns = time_ns,
                   .stack = {.misc = PERF_RECORD_MISC_USER}};
}

void WaitTracker::ended(std::uint32_t tid, std::uint64_t time_ns) {
  if (Thread& thread = threads_[tid]; thread.phase == Phase::kWaiting)
    end_wait(thread, tid, time_ns, false);
  threads_[tid] = {.phase = Phase::kEnded, .stack = {}};
}

/// A thread other than the first takes the number of the first, which has ended.
void WaitTracker::began_program(std::uint32_t tid) {
  threads_[tid] = {.phase = Phase::kRunning, .stack = {}};
}

void WaitTracker::lost_switches(std::uint64_t until_ns) {
  doubtful_until_ns_ = std::max(doubtful_until_ns_, until_ns);
  for (auto& [tid, thread] : threads_)
    thread.is_doubtful = true;  // begin_wait() corrects this after `until_ns`
}

void WaitTracker::finish(std::uint64_t end_ns) {
  std::vector<std::uint32_t> waiting;
  for (const auto& [tid, thread] : threads_)
    if (thread.phase == Phase::kWaiting)
      waiting.push_back(tid);
  std::sort(waiting.begin(), waiting.end());
  for (const std::uint32_t tid : waiting)
    end_wait(threads_[tid], tid, end_ns, true);
}

}  // namespace pe::waits
