// Takes samples by stopping threads (ptrace(2)): everything that has to happen in the one thread
// that traces.
//
// PTRACE_SEIZE does not stop anything, and PTRACE_INTERRUPT stops without a signal that the target
// could see.  A stopped thread shows its registers and its stack is copied, then it runs on at
// once: walking it, which may have to read unwind tables from files, takes a hundred times as long
// and happens elsewhere.
//
// Which threads: at irregular intervals around the wanted one, so as not to keep step with the
// target, each thread is looked at, and sampled if it runs (or waits for a CPU).  cpu_credit.h says
// how that becomes CPU time.  With Clock::kWall sleeping threads are sampled, too: stopped once,
// and as long as they are blocked in the same place with the same stack, that sample is repeated.
//
// A running thread is asked to stop from its own CPU.  A word from another one takes a while to get
// there, and a thread that happens to enter the kernel meanwhile stops there: with 30 us, and
// system calls every 80 us, half of all samples stood in a call that takes 3 % of the time.  While
// we have its CPU the thread is just ready to run, and stops where it was.  Where another CPU is
// idle, though, the kernel may take the thread there when we come.  One that was waiting
// for a CPU before we came is no sample, though it is stopped: where a thread loses its CPU is not
// where it spends its time (with ten programs on two CPUs: always in that system call, which looks
// at the clock).  How long it had been waiting the kernel says once it has run again.
//
// Signals on their way to the target are passed on, stops by SIGSTOP and its kin are left alone
// (PTRACE_LISTEN).  Whatever ends this thread, also SIGKILL, lets the target run on: that is what
// the kernel does (ptrace(2), "Death under ptrace").
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
#include "record/stream/taken_queue.h"
#include "stream/proc/thread_state.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::record {

/// What the tracing thread and its owner tell each other while it runs.
struct TracerOrders {
  std::atomic<bool> is_sampling = false;
  std::atomic<bool> is_ending = false;
  std::atomic<std::uint64_t> interval_ns = 0;   ///< between two looks, as it is now
  std::atomic<std::uint64_t> mean_stop_ns = 0;  ///< what that follows from
  /// Of the command, if there is one.
  std::shared_ptr<WaitedElsewhere> child = std::make_shared<WaitedElsewhere>();
};

class Tracer {
 public:
  /// All of these must outlive it.
  Tracer(const Request& request, TakenQueue& queue, TracerOrders& orders);

  /// Throws Error, Refused where any of the target may not be traced.
  void attach(const Target& target);
  /// Until the orders are to end; SIGCHLD, blocked, wakes it.
  void run();

  [[nodiscard]] const StopTimes& stop_times() const noexcept { return stop_times_; }
  /// Programs that were not traced, because LeakSanitizer in them would fail.
  [[nodiscard]] std::uint64_t left_alone() const noexcept { return left_alone_; }

 private:
  enum class State {
    kRunning,  ///< as far as we are concerned
    kAsked,    ///< to stop
    kStopped,  ///< by SIGSTOP or its kin: not ours to touch
    kHeld,     ///< the command, before it is one
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
    std::uint64_t arrived_ns = 0;            ///< when, for that, we took its CPU
    std::uint64_t sampled_ns = 0;            ///< when it was last sampled, or first seen
    unwind::MemoryRange stack = {};          ///< around its stack pointer, once a copy was full
    std::uint64_t stack_read_ns = 0;         ///< when that was looked up
    std::unique_ptr<TakenSample> last = {};  ///< with Clock::kWall
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
  void take_exec(const Thread& thread);
  void leave_alone(pid_t pid);
  void stand_by(Thread& thread, int signal);
  static void resume(pid_t tid, int signal);
  void sample(Thread& thread);
  std::size_t copy_stack(const Thread& thread, std::uint64_t sp);
  [[nodiscard]] std::uint64_t stop_began_ns() const;
  void hand_over(Thread& thread, TakenSample sample);
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
  TakenQueue& queue_;
  TracerOrders& orders_;
  std::uint64_t wanted_ns_;
  pid_t child_ = 0;
  std::unordered_map<pid_t, Thread> threads_;
  std::vector<pid_t> wanted_;  ///< in this round
  StopTimes stop_times_;
  std::uint64_t left_alone_ = 0;
  stream::ThreadFiles own_files_;
  std::minstd_rand random_;
  CpuPlace place_;
  MappedRanges mapped_;  ///< for threads' stacks
  std::vector<std::byte> copy_;
  std::uint64_t woken_ns_ = 0;       ///< when we last ceased to wait
  std::uint64_t own_waited_ns_ = 0;  ///< for a CPU, in all, before that
};

}  // namespace pe::record
