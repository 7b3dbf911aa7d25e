// The kernel's timers that send SIGPROF to threads.  Uses system calls, because the C library's
// functions may be hooks.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <optional>

#include "inprocess/runtime/pace.h"
#include "inprocess/runtime/tick.h"

namespace pe::inprocess {

struct TimerRequest {
  pid_t tid;  ///< a thread of this process
  Clock clock;
  std::uint64_t period_ns;
  std::uint64_t first_ns;  ///< until the first signal; not 0
  std::uint64_t cookie;    ///< each signal carries it, as its sigval
};

/// Starts a timer.  Returns its number, or nullopt and errno.
std::optional<int> start_timer(const TimerRequest& request) noexcept;

struct PacedRequest {
  pid_t tid;
  Clock clock;
  std::uint32_t hz;  ///< of samples; signals may come more often, see pace.h
  std::uint64_t cookie;
};
/// Starts a timer for samples at a rate.  `pace` selects the signals that become samples.
std::optional<int> start_paced_timer(Pace& pace, const PacedRequest& request) noexcept;
void stop_timer(int timer) noexcept;

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
