// Tracepoints by name ("sched:sched_switch"), through tracefs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pe::stream {

/// Is this the name of a tracepoint, "group:name"?
bool is_tracepoint_name(const std::string& name);

/// The number that perf_event_open(2) wants as config of a PERF_TYPE_TRACEPOINT.
/// Throws Error: tracefs is not mounted or not ours to read, or has no such tracepoint.
std::uint64_t tracepoint_id(const std::string& name);

/// Where a field stands in what a tracepoint tells (Sample::raw); in bytes.
struct TracepointField {
  std::size_t offset = 0, size = 0;
};
/// Throws Error, also where the tracepoint has no such field.
TracepointField tracepoint_field(const std::string& name, std::string_view field);
/// The same from the text of its "format"; nullopt: it has no such field.
std::optional<TracepointField> parse_tracepoint_field(std::string_view format,
                                                      std::string_view field);

}  // namespace pe::stream
