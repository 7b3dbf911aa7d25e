// The kernel's timers that send SIGPROF to threads, by system calls: those of the C library may be
// hooks.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <optional>

#include "inprocess/sampler/core/pace.h"
#include "inprocess/sampler/layout.h"

namespace pe::inprocess {

struct TimerRequest {
  pid_t tid;  ///< of this process
  Clock clock;
  std::uint64_t period_ns;
  std::uint64_t first_ns;  ///< until the first signal; not 0
  std::uint64_t cookie;    ///< comes with each signal, as its sigval
};

/// Begins to send; the timer's number, or nullopt and errno.
std::optional<int> start_timer(const TimerRequest& request) noexcept;

struct PacedRequest {
  pid_t tid;
  Clock clock;
  std::uint32_t hz;  ///< of samples; signals may come more often, see pace.h
  std::uint64_t cookie;
};
/// The same for samples at a rate; `pace` tells which of the signals are to be one.
std::optional<int> start_paced_timer(Pace& pace, const PacedRequest& request) noexcept;
void stop_timer(int timer) noexcept;

/// The timer of the whole process, ITIMER_PROF; 0 ends it.  False: errno.
bool set_process_timer(std::uint64_t period_ns) noexcept;

/// A number below `limit` that differs from call to call, so that samples do not march in step with
/// what a program does.  Not secret.
std::uint64_t scattered(std::uint64_t seed, std::uint64_t limit) noexcept;

/// CLOCK_MONOTONIC as of the last tick of the kernel's clock.  For handlers: it needs neither a
/// system call nor the processor's time stamp counter, both of which a thread may have forbidden
/// itself (seccomp(2), SECCOMP_SET_MODE_STRICT; PR_SET_TSC): clock_gettime(2) with CLOCK_MONOTONIC
/// ends it by SIGSEGV.
std::uint64_t last_tick_ns() noexcept;

using ClockFunction = int (*)(clockid_t, timespec*);
/// Sets the function that last_tick_ns() calls instead of clock_gettime(2): see find_in_libc().
void set_real_clock(ClockFunction function) noexcept;

}  // namespace pe::inprocess
