// SPDX-License-Identifier: MIT
#include "recording/ptrace/cpu_place.h"

#include "recording/own_process.h"

namespace pe::recording {

CpuPlace::CpuPlace() {
  run_before_others();
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

}  // namespace pe::recording
