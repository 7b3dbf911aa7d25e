// Samples threads by stopping them (ptrace(2)).  All of this must run in the one thread that
// traces.
//
// PTRACE_SEIZE does not stop anything, and PTRACE_INTERRUPT stops without a signal that the target
// could see.  The tracer reads a stopped thread's registers, copies its stack, and resumes it at
// once.  Walking the stack takes a hundred times as long, because it may have to read unwind tables
// from files.  So it happens elsewhere.
//
// Threads are checked at irregular intervals around the requested one, so as not to keep step with
// the target.  A thread is sampled if it runs or waits for a CPU.  cpu_credit.h describes how that
// becomes CPU time.  With Clock::kWall, sleeping threads are sampled, but stopped only once.  While
// they are blocked in the same place with the same stack, that sample is repeated.
//
// The tracer asks a running thread to stop from the thread's own CPU.  A request from another CPU
// takes a while to arrive.  A thread that happens to enter the kernel meanwhile stops in the
// kernel.  The delay was 30 us, with system calls every 80 us: half of all samples were in a call
// that takes 3 % of the time.  While we have its CPU, the thread is only ready to run, and stops
// where it was.  But if another CPU is idle, the kernel may move the thread to that CPU when we
// arrive.
//
// A thread that was waiting for a CPU before we arrived gives no sample, though it is stopped.
// Threads do not lose their CPU where they spend their time.  With ten programs on two CPUs, they
// always lost it in that system call, which reads the clock.  The kernel reports how long a thread
// had been waiting only after it has run again.
//
// Pending signals are forwarded to the target.  Stops by SIGSTOP and similar signals are left alone
// (PTRACE_LISTEN).  However this thread ends, even by SIGKILL, the kernel lets the target continue
// (ptrace(2), "Death under ptrace").
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/cli/child.h"
#include "record/engines/cpu_credit.h"
#include "record/engines/cpu_place.h"
#include "record/engines/stop_times.h"
#include "record/mapped_ranges.h"
#include "record/request.h"
#include "record/stream/engine_records.h"
#include "stream/proc/thread_state.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::record {

/// The data that the tracing thread and its owner exchange while it runs.
struct TracerOrders {
  std::atomic<bool> is_sampling = false;
  std::atomic<bool> is_ending = false;
  std::atomic<std::uint64_t> interval_ns = 0;   ///< current time between two scans
  std::atomic<std::uint64_t> mean_stop_ns = 0;  ///< determines interval_ns
  /// The state of the command, if there is one.
  std::shared_ptr<WaitedElsewhere> child = std::make_shared<WaitedElsewhere>();
};

class Tracer {
 public:
  /// All arguments must outlive this.
  Tracer(const Request& request, EngineRecords& records, TracerOrders& orders);

  /// Attaches to the target.  Throws Error, or Refused if any part of the target may not be
  /// traced.
  void attach(const Target& target);
  /// Runs until TracerOrders::is_ending.  SIGCHLD, which must be blocked, wakes it.
  void run();

  [[nodiscard]] const StopTimes& stop_times() const noexcept { return stop_times_; }
  /// Returns the number of programs that were not traced, because LeakSanitizer in them would fail.
  [[nodiscard]] std::uint64_t left_alone() const noexcept { return left_alone_; }

 private:
  enum class State {
    kRunning,  ///< we have not stopped it
    kAsked,    ///< asked to stop
    kStopped,  ///< by SIGSTOP or a similar signal; we leave it alone
    kHeld,     ///< the command, before its exec
  };
  struct KeptSample {
    CopiedSample sample;
    std::vector<std::byte> stack;
  };
  struct Thread {
    pid_t pid = 0, tid = 0;
    State state = State::kRunning;
    stream::ThreadFiles files;
    CpuCredit credit;
    stream::ThreadTimes seen = {};
    bool was_runnable = true;
    std::uint32_t cpu = 0;
    std::uint64_t asked_ns = 0;
    std::uint64_t arrived_ns = 0;           ///< when we occupied its CPU to ask it
    std::uint64_t sampled_ns = 0;           ///< when it was last sampled, or first seen
    unwind::MemoryRange stack = {};         ///< around its stack pointer, after a full copy
    std::uint64_t stack_read_ns = 0;        ///< when `stack` was looked up
    std::unique_ptr<KeptSample> last = {};  ///< its last sample, with Clock::kWall
  };

  Thread& add(pid_t pid, pid_t tid);
  bool seize(pid_t pid, pid_t tid, bool follows);
  void attach_process(pid_t pid);
  void wait_until(std::uint64_t time_ns);
  void take_stops();
  void take_stop(pid_t tid, int status);
  void take_end(pid_t tid, int status);
  void take_event(Thread& thread, int event, int signal);
  void take_birth(const Thread& parent);
  void write_birth(pid_t pid, pid_t tid, pid_t parent_pid, pid_t parent_tid);
  void take_exec(const Thread& thread);
  void leave_alone(pid_t pid);
  void stand_by(Thread& thread, int signal);
  static void resume(pid_t tid, int signal);
  void sample(Thread& thread);
  std::size_t copy_stack(const Thread& thread, std::uint64_t sp);
  [[nodiscard]] std::uint64_t stop_began_ns() const;
  void hand_over(Thread& thread, CopiedSample sample);
  void look_up_stack(Thread& thread, std::uint64_t sp, std::size_t copied);
  bool update_times(Thread& thread);
  bool is_wanted(Thread& thread, std::uint64_t now_ns);
  bool repeat_last(Thread& thread, std::uint64_t now_ns);
  void look_around();
  void ask(pid_t tid);
  bool is_still_there(Thread& thread);
  std::uint64_t next_interval_ns();
  [[nodiscard]] std::uint64_t period_ns() const { return stop_times_.interval_ns(wanted_ns_); }

  const Request& request_;
  EngineRecords& records_;
  TracerOrders& orders_;
  std::uint64_t wanted_ns_;
  pid_t child_ = 0;
  std::unordered_map<pid_t, Thread> threads_;
  std::vector<pid_t> wanted_;  ///< threads to stop in this scan
  StopTimes stop_times_;
  std::uint64_t left_alone_ = 0;
  stream::ThreadFiles own_files_;
  std::minstd_rand random_;
  CpuPlace place_;
  MappedRanges mapped_;  ///< for threads' stacks
  std::vector<std::byte> copy_;
  std::uint64_t woken_ns_ = 0;       ///< when our last wait ended
  std::uint64_t own_waited_ns_ = 0;  ///< our total wait for a CPU before that
};

}  // namespace pe::record
