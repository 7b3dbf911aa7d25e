// The kernel's timers that send SIGPROF to threads.  Uses system calls, because the C library's
// functions may be hooks.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/tick.h"

namespace pe::inprocess {

// Selects the signals of a thread's timer that become samples.
//
// The kernel checks CPU-time timers only when its clock ticks, so samples are a whole number of
// ticks apart.  A program that works in steps of some ticks would always be sampled at the same
// steps.  So the timer expires at each tick, and one signal at a random place in each period
// becomes a sample.  The handler needs no system call for this: a program may have forbidden itself
// nearly all (seccomp).

class Pace {
 public:
  /// Works in zeroed memory.  `interval_ns` is the timer's interval, at most `period_ns`.  `seed`
  /// is any number.
  void start(std::uint64_t period_ns, std::uint64_t interval_ns, std::uint64_t seed) noexcept {
    *this = {};
    period_ns_ = period_ns;
    interval_ns_ = interval_ns;
    random_ = seed | 1;
    target_ns_ = random_in_period();
  }

  /// Call this when the timer has expired `times` times.  Returns how many periods to count now,
  /// mostly 0 or 1.
  std::uint32_t advance(std::uint32_t times) noexcept {
    elapsed_ns_ += std::uint64_t{times} * interval_ns_;
    if (interval_ns_ == period_ns_)
      return times;
    if (elapsed_ns_ < target_ns_)
      return 0;
    const std::uint64_t reached = elapsed_ns_ / period_ns_;
    const std::uint64_t before = period_;
    period_ = std::max(period_ + 1, reached);
    target_ns_ = period_ * period_ns_ + random_in_period();
    return static_cast<std::uint32_t>(period_ - before);
  }

 private:
  /// xorshift64, Marsaglia 2003
  std::uint64_t random_in_period() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % period_ns_;
  }

  std::uint64_t period_ns_, interval_ns_;
  std::uint64_t elapsed_ns_;
  std::uint64_t period_;     ///< the period that the next sample represents
  std::uint64_t target_ns_;  ///< when the next sample is due
  std::uint64_t random_;
};

struct TimerRequest {
  pid_t tid;  ///< a thread of this process
  Clock clock;
  std::uint32_t hz;      ///< of samples; signals may come more often, see Pace
  std::uint64_t cookie;  ///< each signal carries it, as its sigval
};

/// The timer of a sampled thread.  In zeroed memory.
class ThreadTimer {
 public:
  /// False on failure; errno has the reason.
  bool start(const TimerRequest& request) noexcept;
  void stop() noexcept;
  /// Also for other threads than that which starts it.
  [[nodiscard]] bool is_running() const noexcept { return load_published(is_running_); }

  /// Returns how many periods a signal of this timer stands for, mostly 0 or 1.  For handlers.
  std::uint32_t weight_of(const siginfo_t& signal) noexcept {
    return pace_.advance(1 + static_cast<std::uint32_t>(std::max(signal.si_overrun, 0)));
  }

 private:
  Pace pace_;
  int number_;
  bool is_running_;
};

/// Sets the timer of the whole process, ITIMER_PROF; 0 stops it.  False on failure; errno has the
/// reason.
bool set_process_timer(std::uint64_t period_ns) noexcept;

/// Returns a pseudorandom number below `limit`, which depends on `seed`.  It keeps samples from
/// following the rhythm of a program.  Not secret.
std::uint64_t scattered(std::uint64_t seed, std::uint64_t limit) noexcept;

/// Returns CLOCK_MONOTONIC at the last tick of the kernel's clock.  For handlers: it needs neither
/// a system call nor the processor's time stamp counter.  A thread may have forbidden itself both
/// (seccomp(2), SECCOMP_SET_MODE_STRICT; PR_SET_TSC).  Then clock_gettime(2) with CLOCK_MONOTONIC
/// ends it by SIGSEGV.
std::uint64_t last_tick_ns() noexcept;

using ClockFunction = int (*)(clockid_t, timespec*);
/// Sets the function that last_tick_ns() calls instead of clock_gettime(2): see find_in_libc().
void set_real_clock(ClockFunction function) noexcept;

}  // namespace pe::inprocess
