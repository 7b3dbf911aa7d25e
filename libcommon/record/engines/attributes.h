// What is asked of the kernel for an event, and what to say when it refuses.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "record/engines/ring_plan.h"
#include "record/request.h"
#include "stream/records/event.h"

namespace pe::record {

/// The attr of an event by name; `notes` gets a line where the rate had to be lowered.  Throws
/// Error or UsageError.
perf_event_attr make_attr(const Request& request, const RingPlan& plan, const std::string& event,
                          std::vector<std::string>& notes);

/// Asks for no copies of stacks, but for call chains by frame pointers.
void use_frame_pointers(perf_event_attr& attr, const Request& request);

/// The attr of an event that never samples, but tells when threads begin and cease to run; what
/// follows its records is as with `sampling`.
perf_event_attr make_switch_attr(const perf_event_attr& sampling, const RingPlan& plan);

/// The attr of an event that never samples, for a thread of which `sampling` is counted elsewhere:
/// it reports what follow_tasks() asks for.
perf_event_attr make_tracking_attr(const perf_event_attr& sampling);

/// The attr of an event that samples a whole CPU, whatever runs there, and reports nothing else.
perf_event_attr make_cpu_attr(perf_event_attr sampling);

/// Lets this event's counters also tell of mappings, names, forks and exits.
void follow_tasks(perf_event_attr& attr);

/// The sysctl kernel.perf_event_paranoid; a very high level where it cannot be read.
int perf_event_paranoid();

/// "perf_event_paranoid is 3; need 1 or CAP_PERFMON <purpose>".
std::string missing_right(int needed_level, std::string_view purpose);

}  // namespace pe::record
