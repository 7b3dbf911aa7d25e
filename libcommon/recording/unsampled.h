// CPU time that no sample stands for.
//
// A clock's counter samples a thread each time that it has run for a whole period: one that ends
// before is never seen, and its time is in no profile.  Neither is that of who starts many of
// these: where a process and its child take turns, the kernel exchanges their counters, and how far
// each had come ends with the child (perf_event_context_sched_out, kernel/events/core.c).  Nor is
// time in which a virtual machine's CPU was held by its host, whose timer then fires once for many
// periods.  The counters still count all of it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace pe::recording {

/// By the counters of cpu-clock or task-clock, of all threads that were recorded.
struct ClockCounted {
  std::uint64_t time_ns = 0;    ///< CPU time
  std::uint64_t period_ns = 1;  ///< that each sample stands for
};

/// "2.31 of 2.33 s CPU time without samples …" if that is more than the ends of some threads;
/// otherwise empty.  `samples` are those taken and those lost, which are told elsewhere.
std::string describe_unsampled(const ClockCounted& counted, std::uint64_t samples);

}  // namespace pe::recording
