// SPDX-License-Identifier: MIT
#include "inprocess/sigprof/records.h"

#include <ctime>

#include "stream/build_records.h"

namespace pe::inprocess {
namespace {

constexpr std::uint64_t kEventId = 1;
constexpr std::size_t kWordBytes = 8;

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

void write_head(RecordBuffer& buffer, const Options& options) noexcept {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.freq = 1;
  attr.sample_freq = options.hz;
  attr.sample_regs_user = stream::kKnownRegisters;
  attr.sample_stack_user = options.stack_bytes;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  buffer.add_plain(stream::kMagic);
  buffer.add_plain(stream::kPipeHeaderBytes);
  buffer.begin(stream::kRecordHeaderAttr).add(attr).add(kEventId).finish();
  write_update(buffer, stream::kUpdateName,
               options.clock == Clock::kWall ? "wall-clock" : "cpu-clock");
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

void write_sample(RecordBuffer& buffer, std::uint32_t pid, const TakenSample& sample,
                  std::uint64_t period_ns) noexcept {
  const Sample& header = sample.header;
  buffer.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .add(header.registers[kIpRegister])
      .add(pid)
      .add(header.tid)
      .add(header.time_ns)
      .add(header.weight * period_ns);
  stream::add_user_regs(buffer, PERF_SAMPLE_REGS_ABI_64, stream::kKnownRegisters, header.registers);
  const std::size_t copied = sample.stack.size() / kWordBytes * kWordBytes;
  const bool is_cut = (header.flags & kStackIsCut) != 0;
  stream::add_user_stack(buffer, sample.stack, is_cut ? copied : copied + kWordBytes);
  buffer.finish();
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
