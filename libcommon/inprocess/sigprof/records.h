// What a program that profiles itself writes: the records of pe-stream(5) with samples whose stacks
// are copies, for pe-symbolize to walk.  The event is in nanoseconds: a sample's period is the time
// that it stands for.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "inprocess/sampler/ring_reader.h"
#include "inprocess/sigprof/options.h"
#include "inprocess/sigprof/record_buffer.h"
#include "stream/proc/maps_line.h"

namespace pe::inprocess {

/// What tells where and when something was; times are of CLOCK_MONOTONIC.
struct When {
  std::uint32_t pid, tid;
  std::uint64_t time_ns;  ///< 0: from the beginning on
};

/// Header and event.
void write_head(RecordBuffer& buffer, const Options& options) noexcept;
/// The name of a thread.
void write_name(RecordBuffer& buffer, const When& when, std::string_view name) noexcept;
/// `type`: PERF_RECORD_FORK or PERF_RECORD_EXIT, of a thread.
void write_task(RecordBuffer& buffer, std::uint32_t type, const When& when) noexcept;
/// `build_id` may be empty; more than 20 bytes are none.
void write_mapping(RecordBuffer& buffer, const When& when, const stream::MapsLine& map,
                   Bytes build_id) noexcept;
/// `period_ns` is that of one period of the timer.
void write_sample(RecordBuffer& buffer, std::uint32_t pid, const TakenSample& sample,
                  std::uint64_t period_ns) noexcept;
void write_lost(RecordBuffer& buffer, std::uint64_t lost) noexcept;
void write_end(RecordBuffer& buffer) noexcept;

}  // namespace pe::inprocess
