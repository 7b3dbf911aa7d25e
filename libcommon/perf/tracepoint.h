// Tracepoints by name ("sched:sched_switch"), through tracefs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace pe::perf {

/// Is this the name of a tracepoint, "group:name"?
bool is_tracepoint_name(const std::string& name);

/// The number that perf_event_open(2) wants as config of a PERF_TYPE_TRACEPOINT.
/// Throws Error: tracefs is not mounted or not ours to read, or has no such tracepoint.
std::uint64_t tracepoint_id(const std::string& name);

}  // namespace pe::perf
