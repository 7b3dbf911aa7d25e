// Writes the stream of a program that profiles itself: the records of pe-stream(5), with samples
// that contain copies of stacks.  pe-symbolize walks these.  The event counts nanoseconds: a
// sample's period is the time that it represents.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "recording/signal/layout.h"
#include "recording/sigprof/record_buffer.h"
#include "stream/proc/maps_line.h"

namespace pe::inprocess {

/// The process, thread and time of a record; times are of CLOCK_MONOTONIC.
struct When {
  std::uint32_t pid, tid;
  std::uint64_t time_ns;  ///< 0: from the start on
};

/// Writes the stream's header and its event.
void write_head(RecordBuffer& buffer, const SampleSettings& settings) noexcept;
/// Writes the name of a thread.
void write_name(RecordBuffer& buffer, const When& when, std::string_view name) noexcept;
/// Writes the start or end of a thread.  `type` is PERF_RECORD_FORK or PERF_RECORD_EXIT.
void write_task(RecordBuffer& buffer, std::uint32_t type, const When& when) noexcept;
/// Writes a mapping.  `build_id` may be empty; one of more than 20 bytes is ignored.
void write_mapping(RecordBuffer& buffer, const When& when, const stream::MapsLine& map,
                   Bytes build_id) noexcept;
/// Writes a sample as a handler has written it.
void write_sample(RecordBuffer& buffer, const stream::Record& sample) noexcept;
void write_lost(RecordBuffer& buffer, std::uint64_t lost) noexcept;
void write_end(RecordBuffer& buffer) noexcept;

}  // namespace pe::inprocess
