// Samples threads by stopping them (ptrace(2)): decides when which thread is due.  All of this must
// run in the one thread that traces.
//
// Threads are checked at irregular intervals around the requested one, so as not to keep step with
// the target.  A thread is sampled if it runs or waits for a CPU.  cpu_credit.h describes how that
// becomes CPU time.  With Clock::kWall, sleeping threads are sampled, but stopped only once.  While
// they are blocked in the same place with the same stack, that sample is repeated.
//
// A thread that was waiting for a CPU before we arrived gives no sample, though it is stopped.
// Threads do not lose their CPU where they spend their time.  With ten programs on two CPUs, they
// always lost it in that system call, which reads the clock.  The kernel reports how long a thread
// had been waiting only after it has run again.  But a thread whose CPU time is the same at the
// scan and when we arrive at its CPU has been waiting, and is not stopped.
//
// However this thread ends, even by SIGKILL, the kernel lets the target continue (ptrace(2), "Death
// under ptrace").
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/budget.h"
#include "recording/child.h"
#include "recording/ptrace/stop_times.h"
#include "recording/ptrace/thread_registry.h"
#include "recording/ptrace/thread_stopper.h"
#include "recording/request.h"
#include "recording/stream/engine_records.h"

namespace pe::recording {

/// The data that the tracing thread and its owner exchange while it runs.
struct TracerOrders {
  std::atomic<bool> is_sampling = false;
  std::atomic<bool> is_ending = false;
  std::atomic<std::uint64_t> interval_ns = 0;   ///< current time between two scans
  std::atomic<std::uint64_t> mean_stop_ns = 0;  ///< determines interval_ns
  std::atomic<std::uint64_t> scan_ns = 0;  ///< determines it, if there are too many threads; else 0
  std::atomic<std::size_t> threads = 0;
  /// The state of the command, if there is one.
  std::shared_ptr<WaitedElsewhere> child = std::make_shared<WaitedElsewhere>();
};

class Tracer {
 public:
  /// All arguments must outlive this.  `records` must read scripts.
  Tracer(const Request& request, EngineRecords& records, TracerOrders& orders, Budget& budget);

  /// Attaches to the target, as ThreadRegistry::attach() does.
  void attach(const Target& target) { threads_.attach(target); }
  /// Runs until TracerOrders::is_ending.  SIGCHLD, which must be blocked, wakes it.
  void run();

  [[nodiscard]] const StopTimes& stop_times() const noexcept { return stop_times_; }
  /// Returns the time that all samples represent.
  [[nodiscard]] std::uint64_t sampled_ns() const noexcept { return sampled_ns_; }
  [[nodiscard]] std::uint64_t left_alone() const noexcept { return threads_.left_alone(); }

 private:
  std::uint64_t place_in_slot_ns();
  void scan();
  [[nodiscard]] bool is_crowded() const;
  bool is_wanted(TracedThread& thread, std::uint64_t now_ns);
  bool update_times(TracedThread& thread);
  bool is_due_now(TracedThread& thread);
  bool is_due_stopped(TracedThread& thread, std::uint64_t began_ns);
  bool repeat_last(TracedThread& thread, std::uint64_t now_ns);
  void stop(pid_t tid);
  void sample_stopped();
  void sample(TracedThread& thread);
  void write(TracedThread& thread, CopiedSample sample);
  void keep(TracedThread& thread, const CopiedSample& sample);

  const Request& request_;
  EngineRecords& records_;
  TracerOrders& orders_;
  Budget& budget_;
  StopTimes stop_times_;
  ThreadRegistry threads_;
  ThreadStopper stopper_;
  std::vector<pid_t> wanted_;  ///< threads to stop in this scan
  std::minstd_rand random_;
  std::uint64_t sampled_ns_ = 0;
};

}  // namespace pe::recording
