// Counters of whole CPUs whose samples are those of some processes, and of whoever these fork.
//
// A counter of a thread is stopped and started with each switch: it misses the time between, and
// gives a thread that runs for less than a period no sample.  A counter of a CPU goes on; here the
// kernel drops the samples of all other processes before it writes anything of them.
//
// Needs Linux 5.15, BTF, root or CAP_BPF and CAP_PERFMON, and the first pid namespace.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "unwind/kernel/target_start.h"

namespace pe::unwind {

class TargetFilter {
 public:
  TargetFilter() = default;
  TargetFilter(const TargetFilter&) = delete;
  TargetFilter& operator=(const TargetFilter&) = delete;
  TargetFilter(TargetFilter&&) = delete;
  TargetFilter& operator=(TargetFilter&&) = delete;
  virtual ~TargetFilter() = default;

  /// False if there are too many.
  virtual bool add_target(std::uint32_t tgid, TargetStart start) = 0;
  /// Of a counter opened by stream::open_counter().  Throws Error.
  virtual void attach_to_counter(int counter) = 0;
  /// Forked processes that had no room: they have no samples.
  [[nodiscard]] virtual std::uint64_t not_followed() const = 0;
};

/// Throws Error where the kernel does not let us; its message says why.
std::unique_ptr<TargetFilter> load_target_filter();

/// Throws Unavailable: the kernel's programs see ids of the first pid namespace only.
void refuse_other_pid_namespaces();

}  // namespace pe::unwind
