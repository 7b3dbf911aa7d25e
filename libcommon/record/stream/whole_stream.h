// What stands around the records of a recording: the head of the stream, what was running before,
// what was lost, and the mark of a whole stream.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "record/engines/counters.h"
#include "record/stream/recorded_stream.h"

namespace pe::record {

/// The stream's header and its events.  Throws Error where there are too many counters to tell
/// several events apart.
void write_head(RecordedStream& stream, std::span<const OpenedEvent> events);

/// What was running before, in records of that layout; returns the processes that could not be
/// read.
std::vector<pid_t> write_running(RecordedStream& stream, const perf_event_attr& layout,
                                 const Target& target);

/// What was lost, and the mark of a whole stream; returns what the counters say they have lost, and
/// the engine that takes their samples, all told as the first event's.
std::uint64_t write_tail(RecordedStream& stream, const Counters& counters,
                         std::uint64_t lost_by_engine = 0);
/// The same of an event that no counter was opened for, and what is known to be lost of it.
void write_tail(RecordedStream& stream, const OpenedEvent& event, std::uint64_t lost);

/// Waits for the copies of binaries that would be gone later: "; 2 binary files kept in ~/.debug",
/// or nothing, for the closing line.
std::string finish_keeping(RecordedStream& stream);

/// "3 processes could not be read in /proc (the first: 7): no names for their frames", of what
/// write_running() returned.
std::string describe_unreadable(const std::vector<pid_t>& processes);

}  // namespace pe::record
