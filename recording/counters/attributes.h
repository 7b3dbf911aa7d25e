// Builds the attributes of events for the kernel, and the messages for its refusals.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/closing.h"
#include "recording/counters/counter.h"
#include "recording/request.h"
#include "stream/records/event.h"

namespace pe::recording {

// How long each CPU was sampled.  The kernel removes the counters of a CPU that goes offline, as
// all but the first do when a machine is suspended, and they do not return with it (Linux 6.18,
// perf_event_exit_cpu()).

struct CpuTime {
  int cpu = 0;
  std::uint64_t sampled_ns = 0;
};

/// Returns the CPUs that are online, from /sys/devices/system/cpu/online.
std::vector<int> online_cpus();

/// Adds the CPUs that went offline during the recording, and those of `online` that came later.
void describe_cpus(std::span<const CpuTime> times, std::span<const int> online, Closing& closing);

/// Returns the attr of an event, by name.  Adds a line to `notes` if the rate had to be lowered, or
/// slows the target.  Throws Error or UsageError.
perf_event_attr make_attr(const Request& request, const RingPlan& plan, const std::string& event,
                          std::vector<std::string>& notes);

/// Returns the sysctl kernel.perf_event_max_sample_rate, in Hz; nullopt if it cannot be read.
std::optional<std::uint64_t> most_sample_hz();

/// Drops precise_ip (the modifiers p) if the kernel samples the event only without it.  Returns
/// whether it did.
bool drop_refused_precision(perf_event_attr& attr);

/// Replaces the event CPU cycles by the CPU's clock, in `attr` and in its `name`.  Keeps modifiers,
/// except those for the precision.  Returns false for any other event.
bool use_clock_for_cycles(perf_event_attr& attr, std::string& name);

/// Returns whether the kernel counts the event, for this process or on `cpu`, even if it cannot
/// sample it.
bool can_count(const perf_event_attr& attr, int cpu);

/// Requests call chains by frame pointers instead of copies of stacks.
void use_frame_pointers(perf_event_attr& attr, const Request& request);

/// Returns the attr of an event that never samples, but reports when threads start and stop
/// running.  Its records have the same trailer as those of `sampling`.
perf_event_attr make_switch_attr(const perf_event_attr& sampling, const RingPlan& plan);

/// Returns the attr of an event that samples a whole CPU whenever a thread is woken there.  Its
/// records have the layout of those of `sampling`, up to the program's registers, which they lack.
perf_event_attr make_wakeup_attr(const perf_event_attr& sampling, const RingPlan& plan);

/// Returns the attr of an event that never samples, for a thread whose `sampling` is counted
/// elsewhere.  It reports the changes that follow_tasks() requests.
perf_event_attr make_tracking_attr(const perf_event_attr& sampling);

/// Returns the attr of an event that samples a whole CPU, whatever runs on it, and reports nothing
/// else.
perf_event_attr make_cpu_attr(perf_event_attr sampling);

/// Returns the attr of an event that marks the entries or exits of a function.  Its records have
/// the layout of those of `sampling`, but no call chain and nearly no stack, so that they are
/// cheap. The attr refers to the text of `probe`.  Throws Error as EventSources::set_probe() does.
perf_event_attr make_mark_attr(const perf_event_attr& sampling, const Probe& probe);

/// Makes the event's counters also report mappings, names, forks and exits.
void follow_tasks(perf_event_attr& attr);

/// Returns the sysctl kernel.perf_event_paranoid; a very high level if it cannot be read.
int perf_event_paranoid();

/// Returns "perf_event_paranoid is 3; need 1 or CAP_PERFMON <purpose>".
std::string missing_right(int needed_level, std::string_view purpose);

}  // namespace pe::recording
