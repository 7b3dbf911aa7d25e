// SPDX-License-Identifier: MIT
#include "record/engines/ptrace/cpu_place.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pe::record {
namespace {

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
  attr.nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  attr.runtime = 100'000;  // the shortest
  ::syscall(SYS_sched_setattr, 0, &attr, 0);
}

}  // namespace

CpuPlace::CpuPlace() {
  constexpr int kFirst = -20;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kFirst);
  ask_for_short_slices();
  if (::sched_getaffinity(0, sizeof cpus_, &cpus_) != 0)
    CPU_ZERO(&cpus_);  // the machine has more CPUs than cpus_ can hold
}

bool CpuPlace::is_on(std::uint32_t cpu) noexcept {
  return static_cast<std::uint32_t>(::sched_getcpu()) == cpu;
}

bool CpuPlace::stand_on(std::uint32_t cpu) {
  if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &cpus_))
    return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0)
    return false;
  is_pinned_ = true;
  return true;
}

void CpuPlace::stand_anywhere() {
  if (is_pinned_)
    ::sched_setaffinity(0, sizeof cpus_, &cpus_);
  is_pinned_ = false;
}

}  // namespace pe::record
