// Finds tracepoints by name ("sched:sched_switch") in tracefs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pe::stream {

/// Returns whether `name` has the form of a tracepoint's name, "group:name".
bool is_tracepoint_name(const std::string& name);

/// Returns the number that perf_event_open(2) needs as config of a PERF_TYPE_TRACEPOINT.  Throws
/// Error if tracefs is not mounted, we may not read it, or it has no such tracepoint.
std::uint64_t tracepoint_id(const std::string& name);

/// The place of a field in a tracepoint's data (Sample::raw), in bytes.
struct TracepointField {
  std::size_t offset = 0, size = 0;
};
/// Throws Error, also if the tracepoint has no such field.
TracepointField tracepoint_field(const std::string& name, std::string_view field);
/// Finds the field in the text of the tracepoint's "format" file; nullopt if there is no such
/// field.
std::optional<TracepointField> parse_tracepoint_field(std::string_view format,
                                                      std::string_view field);

}  // namespace pe::stream
