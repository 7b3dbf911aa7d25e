// SPDX-License-Identifier: MIT
#include "recording/own_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace pe::recording {
namespace {

int own_nice() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }
void set_nice(int nice) { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice); }

/// Since Linux 6.12, a thread with shorter slices preempts the running thread at once.  This needs
/// no privileges (sched(7), sched_setattr(2)).
void ask_for_short_slices() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attr{};
  attr.size = sizeof attr;
  attr.nice = own_nice();
  attr.runtime = 100'000;  // the shortest
  ::syscall(SYS_sched_setattr, 0, &attr, 0);
}

}  // namespace

void run_before_others() {
  constexpr int kFirst = -20;
  if (own_nice() > 0 || ::sched_getscheduler(0) != SCHED_OTHER)
    return;
  set_nice(kFirst);
  ask_for_short_slices();
}

void run_among_others() {
  if (own_nice() < 0)
    set_nice(0);
}

}  // namespace pe::recording
