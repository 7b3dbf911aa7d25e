// Writes the parts around the records of a recording: the stream's head, the processes that were
// already running, the losses, and the end mark of a complete stream.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/cli/closing.h"
#include "recording/counters/counters.h"
#include "recording/stream/recorded_stream.h"
#include "stream/stream_writer.h"

// Notes in a stream where, how and when it was recorded (stream/records/record.h).

namespace pe::recording {

/// Returns perf's data of kFeatureClockData: version, clock, and the two times.
std::string clock_data();

/// Writes the host's name, the version of this program with the engine that records, its command
/// line, and the time of day on the clock of the samples (CLOCK_MONOTONIC).  What the system does
/// not tell is left out; so is a word of the command line after 32 KiB.  The attrs must precede
/// these records.
void write_origin(stream::StreamWriter& writer, std::string_view engine);

/// Writes the stream's header, its events, and its origin, with the name of the engine that
/// records. Throws Error if there are too many counters to distinguish several events.
void write_head(RecordedStream& stream, std::span<const OpenedEvent> events,
                std::string_view engine);

/// Writes the processes that were already running, in records of that layout.  Returns those that
/// could not be read.
std::vector<pid_t> write_running(RecordedStream& stream, const perf_event_attr& layout,
                                 const Target& target);

/// Writes the losses and the end mark of a complete stream.  Returns the losses that the counters
/// report, plus those of the engine that samples, which are written as the first event's.
std::uint64_t write_tail(RecordedStream& stream, const Counters& counters,
                         std::uint64_t lost_by_engine = 0);
/// Does the same for an event without counters; `lost` is the known number of its losses.
void write_tail(RecordedStream& stream, const OpenedEvent& event, std::uint64_t lost);

/// Waits for the copies of binaries that would be gone later.  Adds "2 binary files kept in
/// ~/.debug", and files that could not be kept.
void finish_keeping(RecordedStream& stream, Closing& closing);

/// Adds the processes that have lost something because they could not pay for it from the budget.
void describe_spending(RecordedStream& stream, Closing& closing);

/// Returns "3 processes could not be read in /proc (the first: 7), so their frames have no names:
/// record as root", for the result of write_running() and stream::fix_of_unreadable_processes().
/// Counts only those `with_frames`; empty if there is none.
std::string describe_unreadable(std::vector<pid_t> processes,
                                const std::unordered_set<std::uint32_t>& with_frames,
                                std::string_view fix);

}  // namespace pe::recording
