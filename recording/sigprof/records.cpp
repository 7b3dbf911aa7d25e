// SPDX-License-Identifier: MIT
#include "recording/sigprof/records.h"

#include "stream/build_records.h"

namespace pe::inprocess {
namespace {

constexpr std::uint64_t kEventId = 1;

/// Finishes a record with the fields that sample_id_all adds (perf_event_open(2), struct
/// sample_id).
void finish(RecordBuffer& buffer, const When& when) noexcept {
  buffer.pad().add(when.pid).add(when.tid).add(when.time_ns).finish();
}

void write_update(RecordBuffer& buffer, stream::EventUpdate what, std::string_view text) noexcept {
  buffer.begin(stream::kRecordEventUpdate)
      .add(std::uint64_t{what})
      .add(kEventId)
      .add_string(text)
      .pad()
      .finish();
}

}  // namespace

void write_head(RecordBuffer& buffer, const SampleSettings& settings) noexcept {
  const perf_event_attr attr = sample_attr(settings.hz, settings.stack_bytes);
  buffer.add_plain(stream::kMagic);
  buffer.add_plain(stream::kPipeHeaderBytes);
  buffer.begin(stream::kRecordHeaderAttr).add(attr).add(kEventId).finish();
  write_update(buffer, stream::kUpdateName,
               settings.clock == Clock::kWall ? "wall-clock" : "cpu-clock");
  write_update(buffer, stream::kUpdateUnit, "ns");
}

void write_name(RecordBuffer& buffer, const When& when, std::string_view name) noexcept {
  stream::build_comm(buffer, when.pid, when.tid, name);
  finish(buffer, when);
}

void write_task(RecordBuffer& buffer, std::uint32_t type, const When& when) noexcept {
  stream::build_task(
      buffer, type,
      {.pid = when.pid, .parent_pid = when.pid, .tid = when.tid, .parent_tid = when.pid},
      when.time_ns);
  finish(buffer, when);
}

void write_mapping(RecordBuffer& buffer, const When& when, const stream::MapsLine& map,
                   Bytes build_id) noexcept {
  stream::build_mapping(buffer, when.pid, map, build_id);
  finish(buffer, when);
}

void write_sample(RecordBuffer& buffer, const stream::Record& sample) noexcept {
  buffer.begin(sample.type, sample.misc).add_bytes(sample.body()).finish();
}

void write_lost(RecordBuffer& buffer, std::uint64_t lost) noexcept {
  // The record has no thread and no time.
  buffer.begin(PERF_RECORD_LOST_SAMPLES).add(lost);
  finish(buffer, {0, 0, 0});
}

void write_end(RecordBuffer& buffer) noexcept {
  buffer.begin(stream::kRecordFinishedRound).finish();
}

}  // namespace pe::inprocess
