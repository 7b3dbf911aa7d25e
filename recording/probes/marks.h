// The events that mark the entries and exits of functions (Request::spans).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "recording/counters/counters.h"
#include "recording/request.h"
#include "stream/stream_writer.h"

namespace pe::recording {

/// Adds two events for each function to `events`, which has the events that sample, and lines for
/// the user to `notes`.  From now on all events record the program's stack pointer, so that all
/// records have the same layout.  The attrs refer to texts of `request`.
void add_marks(const Request& request, std::vector<OpenedEvent>& events,
               std::vector<std::string>& notes);

/// Returns the ids of the counters of such events.
std::vector<std::uint64_t> mark_ids(std::span<const OpenedEvent> events);
/// Declares such events in the head of a stream.
void write_mark_events(stream::StreamWriter& writer, std::span<const OpenedEvent> events);

}  // namespace pe::recording
