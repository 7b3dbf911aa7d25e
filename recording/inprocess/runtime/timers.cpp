// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/timers.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "base/clock.h"

namespace pe::inprocess {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit ClockFunction real_clock = nullptr;

/// The kernel's MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED), linux/posix-timers_types.h.
clockid_t cpu_clock_of(pid_t tid) noexcept {
  constexpr unsigned kSched = 2;
  constexpr unsigned kPerThread = 4;
  return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | kSched | kPerThread);
}

}  // namespace

bool ThreadTimer::start(const TimerRequest& request) noexcept {
  const std::uint64_t period_ns = kNsPerSecond / request.hz;
  const bool is_wall = request.clock == Clock::kWall;
  const std::uint64_t interval_ns = is_wall ? period_ns : std::min(period_ns, tick_ns());
  const std::uint64_t seed = last_tick_ns() ^ (static_cast<std::uint64_t>(request.tid) << 40);
  pace_.start(period_ns, interval_ns, scattered(seed, ~std::uint64_t{0}));
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event.sigev_value.sival_ptr =
      reinterpret_cast<void*>(request.cookie);  // NOLINT(performance-no-int-to-ptr)
  event._sigev_un._tid = request.tid;
  const clockid_t clock = is_wall ? CLOCK_MONOTONIC : cpu_clock_of(request.tid);
  if (::syscall(SYS_timer_create, clock, &event, &number_) != 0)
    return false;
  // The first interval is random.  So threads that live shorter than an interval are also sampled
  // in proportion to their time.
  const itimerspec when{timespec_of(interval_ns),
                        timespec_of(1 + scattered(seed + 1, interval_ns))};
  const bool is_set = ::syscall(SYS_timer_settime, number_, 0, &when, nullptr) == 0;
  if (!is_set)
    ::syscall(SYS_timer_delete, number_);
  publish(is_running_, is_set);
  return is_set;
}

void ThreadTimer::stop() noexcept {
  if (is_running())
    ::syscall(SYS_timer_delete, number_);
  publish(is_running_, false);
}

bool set_process_timer(std::uint64_t period_ns) noexcept {
  const timeval period{static_cast<time_t>(period_ns / kNsPerSecond),
                       static_cast<suseconds_t>(period_ns % kNsPerSecond / kNsPerUs)};
  const itimerval when{period, period};
  return ::syscall(SYS_setitimer, ITIMER_PROF, &when, nullptr) == 0;
}

std::uint64_t scattered(std::uint64_t seed, std::uint64_t limit) noexcept {
  // splitmix64, Steele, Lea, Flood 2014
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return (seed ^ (seed >> 31)) % limit;
}

std::uint64_t last_tick_ns() noexcept {
  timespec now{};
  if (real_clock != nullptr)
    real_clock(CLOCK_MONOTONIC_COARSE, &now);
  else
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return ns_of(now);
}

void set_real_clock(ClockFunction function) noexcept { real_clock = function; }

}  // namespace pe::inprocess
