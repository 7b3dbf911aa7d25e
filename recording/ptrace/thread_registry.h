// The threads that ptrace(2) has attached: how they come and go, and why they stop.  All of this
// must run in the one thread that traces.
//
// PTRACE_SEIZE does not stop anything.  The kernel attaches the threads that an attached thread
// creates.  Pending signals are forwarded to the target.  Stops by SIGSTOP and similar signals are
// left alone (PTRACE_LISTEN).
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "recording/child.h"
#include "recording/ptrace/cpu_credit.h"
#include "recording/ptrace/stop_times.h"
#include "recording/request.h"
#include "recording/stream/engine_records.h"
#include "recording/thread_state.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {

/// A sample, with its own copies of the stacks.
struct KeptSample {
  CopiedSample sample;
  std::vector<std::byte> stack;
  languages::ScriptFrames script;
  KeptBytes room;  ///< for the stack
};

struct TracedThread {
  enum class State {
    kRunning,  ///< we have not stopped it
    kAsked,    ///< asked to stop
    kStopped,  ///< by SIGSTOP or a similar signal; we leave it alone
    kHeld,     ///< the command, before its exec
  };

  /// Adds the CPU time since the last call.  Returns false if the thread is gone, or has not run.
  bool update_times();
  /// `seen` is exact, because the thread does not run.
  void set_exact(std::uint64_t now_ns) noexcept;
  /// Returns the most CPU time that the thread may have had and `seen` lacks.
  [[nodiscard]] std::uint64_t unseen_ns(std::uint64_t now_ns) const noexcept;

  pid_t pid = 0, tid = 0;
  State state = State::kRunning;
  stream::ThreadFiles files;
  CpuCredit credit;
  stream::ThreadTimes seen = {};
  bool was_runnable = true;
  bool was_beside_us = false;  ///< the last scan had its CPU
  std::uint32_t cpu = 0;
  std::uint64_t asked_ns = 0;
  std::uint64_t exact_ns = 0;             ///< when `seen` was last exact; 0: not yet
  std::uint64_t exact_busy_ns = 0;        ///< the time that it had run or waited by then
  std::uint64_t arrived_ns = 0;           ///< when we occupied its CPU to ask it
  std::uint64_t sampled_ns = 0;           ///< when it was last sampled, or first seen
  unwind::MemoryRange stack = {};         ///< its own stack, after a full copy of that
  std::uint64_t stack_read_ns = 0;        ///< when `stack` was looked up
  std::unique_ptr<KeptSample> last = {};  ///< with Clock::kWall its last sample, if there is room
};

/// Lets a stopped thread continue, with `signal` unless that is 0.  A failure means that the thread
/// has been killed, which wait(2) reports.
void resume(pid_t tid, int signal);

class ThreadRegistry {
 public:
  /// `times` determines the first credit of a thread.  All arguments must outlive this.
  ThreadRegistry(const StopTimes& times, EngineRecords& records, WaitedElsewhere& child)
      : times_(times), records_(records), child_state_(child) {}

  /// Attaches to the target.  Throws Error, or Refused if any part of the target may not be
  /// traced.
  void attach(const Target& target);
  /// Handles what wait(2) reports, up to a stop that was asked for.  Returns that thread, which the
  /// caller must resume; nullptr if there are no more reports.  Invalidates other threads.
  TracedThread* next_stopped();
  /// Returns nullptr if the thread is not attached.
  [[nodiscard]] TracedThread* find(pid_t tid);
  /// All attached threads, by tid.
  [[nodiscard]] std::unordered_map<pid_t, TracedThread>& threads() noexcept { return threads_; }
  /// Returns the number of programs that were not traced, because LeakSanitizer in them would fail.
  [[nodiscard]] std::uint64_t left_alone() const noexcept { return left_alone_; }

 private:
  TracedThread& add(pid_t pid, pid_t tid);
  bool seize(pid_t pid, pid_t tid, bool follows);
  void attach_process(pid_t pid, bool may_end);
  bool handle_stop(TracedThread& thread, int status);
  void handle_end(pid_t tid, int status);
  bool stand_by(TracedThread& thread, int signal);
  TracedThread& add_unannounced(pid_t tid);
  void handle_birth(const TracedThread& parent);
  void write_birth(pid_t pid, pid_t tid, pid_t parent_pid, pid_t parent_tid);
  void handle_exec(const TracedThread& thread);
  void leave_alone(pid_t pid);

  const StopTimes& times_;
  EngineRecords& records_;
  WaitedElsewhere& child_state_;
  pid_t child_ = 0;
  std::unordered_map<pid_t, TracedThread> threads_;
  std::uint64_t left_alone_ = 0;
};

}  // namespace pe::recording
