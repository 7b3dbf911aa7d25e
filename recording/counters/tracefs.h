// Finds tracepoints by name ("sched:sched_switch") in tracefs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stream/records/tracepoint.h"

namespace pe::recording {

inline constexpr const char* kSwitchTracepoint = "sched:sched_switch";
inline constexpr const char* kWakeupTracepoint = "sched:sched_wakeup";

/// Returns whether `name` has the form of a tracepoint's name, "group:name".
bool is_tracepoint_name(const std::string& name);

/// Returns the number that perf_event_open(2) needs as config of a PERF_TYPE_TRACEPOINT.  Throws
/// Error if tracefs is not mounted, we may not read it, or it has no such tracepoint.
std::uint64_t tracepoint_id(const std::string& name);

/// Returns all fields of a tracepoint, those that all tracepoints have first.  Throws Error.
std::vector<stream::TracepointField> tracepoint_fields(const std::string& name);
/// Returns the names of all tracepoints, "group:name", sorted; empty if tracefs cannot be read.
std::vector<std::string> tracepoint_names();
/// Throws Error, also if the tracepoint has no such field.
stream::TracepointField tracepoint_field(const std::string& name, std::string_view field);

}  // namespace pe::recording
