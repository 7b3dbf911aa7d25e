// Finds tracepoints by name ("sched:sched_switch") in tracefs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pe::stream {

/// Returns whether `name` has the form of a tracepoint's name, "group:name".
bool is_tracepoint_name(const std::string& name);

/// Returns the number that perf_event_open(2) needs as config of a PERF_TYPE_TRACEPOINT.  Throws
/// Error if tracefs is not mounted, we may not read it, or it has no such tracepoint.
std::uint64_t tracepoint_id(const std::string& name);

/// The place of a field in a tracepoint's data (Sample::raw), in bytes.
struct TracepointField {
  std::size_t offset = 0, size = 0;
  std::string name = {};
  bool is_signed = false;
};
/// Returns all fields of a tracepoint, those that all tracepoints have first.  Throws Error.
std::vector<TracepointField> tracepoint_fields(const std::string& name);
/// Parses the text of a "format" file.  Malformed lines are left out.
std::vector<TracepointField> parse_tracepoint_fields(std::string_view format);
/// Returns the names of all tracepoints, "group:name", sorted; empty if tracefs cannot be read.
std::vector<std::string> tracepoint_names();
/// Throws Error, also if the tracepoint has no such field.
TracepointField tracepoint_field(const std::string& name, std::string_view field);
/// Finds the field in the text of the tracepoint's "format" file; nullopt if there is no such
/// field.
std::optional<TracepointField> parse_tracepoint_field(std::string_view format,
                                                      std::string_view field);

}  // namespace pe::stream
