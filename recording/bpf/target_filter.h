// Counters of whole CPUs that sample only some processes, and the processes that these fork.
//
// A counter of a thread is stopped and started with each switch.  It misses the time between, and
// gives no sample to a thread that runs for less than a period.  A counter of a CPU continues.  The
// kernel drops the samples of all other processes before it writes anything of them.
//
// It needs Linux 5.15, BTF, root or CAP_BPF and CAP_PERFMON, and the first pid namespace.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "recording/bpf/target_start.h"

namespace pe::unwind {

// The kind of counter to which we attach a program of the kernel.  Each kind needs a program of its
// own.

enum class CounterKind : std::uint8_t {
  kSampling,  ///< samples now and then
  kProbe,     ///< of a place in code (the PMUs uprobe and kprobe): samples each pass
};

class TargetFilter {
 public:
  TargetFilter() = default;
  TargetFilter(const TargetFilter&) = delete;
  TargetFilter& operator=(const TargetFilter&) = delete;
  TargetFilter(TargetFilter&&) = delete;
  TargetFilter& operator=(TargetFilter&&) = delete;
  virtual ~TargetFilter() = default;

  /// Returns false if there are too many targets.
  virtual bool add_target(std::uint32_t tgid, TargetStart start) = 0;
  /// Attaches the filter to a counter that was opened by stream::open_counter().  Throws Error.
  virtual void attach_to_counter(int counter, CounterKind kind) = 0;
  /// The number of forked processes that had no room: they have no samples.
  [[nodiscard]] virtual std::uint64_t not_followed() const = 0;
};

/// Throws Error if the kernel refuses the filter; the message gives the reason.
std::unique_ptr<TargetFilter> load_target_filter();

/// Throws recording::Refused in other pid namespaces: the kernel's programs see only ids of the
/// first one.
void refuse_other_pid_namespaces();

}  // namespace pe::unwind
