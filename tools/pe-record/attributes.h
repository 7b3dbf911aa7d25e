// What is asked of the kernel for an event, and what to say when it refuses.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "pe-record/options.h"
#include "perf/event.h"

namespace pe::record {

/// The attr of an event by name; `say` hears of a rate that had to be lowered.  Throws Error or
/// UsageError.
perf_event_attr make_attr(const Options& options, const std::string& event,
                          const std::function<void(const std::string&)>& say);

/// Lets this event's counters also tell of mappings, names, forks and exits.
void follow_tasks(perf_event_attr& attr);

/// "perf_event_paranoid is 3; need 1 or CAP_PERFMON <purpose>".
std::string missing_right(int needed_level, std::string_view purpose);

}  // namespace pe::record
