// A program that exec(3) starts inherits the process's timer (setitimer(2)), but not our handler.
// The timer's first signal would kill it, so we stop the timer before.  The timers of threads end
// by themselves, and children of posix_spawn(3) inherit no timers.
// SPDX-License-Identifier: MIT
#include <cstdint>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/exec_hooks.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/process.h"

namespace pe::inprocess {

bool follows_exec() noexcept {
  return process.settings.follows_forks || (process.samples() && is_own_process());
}

bool follows_spawn() noexcept { return process.settings.follows_forks; }

bool begin_exec() noexcept {
  const bool stops =
      process.samples() && process.timer_kind == TimerKind::kProcess && is_own_process();
  if (stops)
    set_process_timer(0);
  return stops;
}

void fail_exec(bool what_began) noexcept {
  if (what_began)
    set_process_timer(process.settings.period_ns());
}

void leave_out() noexcept {
  if (process.samples())
    count_up(process.header().left_out);
}

}  // namespace pe::inprocess
