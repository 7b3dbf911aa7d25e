// How long each CPU was sampled.  The kernel removes the counters of a CPU that goes offline, as
// all but the first do when a machine is suspended, and they do not return with it (Linux 6.18,
// perf_event_exit_cpu()).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cli/closing.h"

namespace pe::recording {

struct CpuTime {
  int cpu = 0;
  std::uint64_t sampled_ns = 0;
};

/// Returns the CPUs that are online, from /sys/devices/system/cpu/online.
std::vector<int> online_cpus();

/// Adds the CPUs that went offline during the recording, and those of `online` that came later.
void describe_cpus(std::span<const CpuTime> times, std::span<const int> online, Closing& closing);

}  // namespace pe::recording
