// SPDX-License-Identifier: MIT
#include "inprocess/sigprof/records.h"

#include <algorithm>
#include <bit>
#include <ctime>

#include "stream/records/user_registers.h"

namespace pe::inprocess {
namespace {

constexpr std::size_t kBuildIdRoom = 20;  // linux/buildid.h, BUILD_ID_SIZE_MAX
constexpr std::uint64_t kEventId = 1;
constexpr std::uint64_t kWordBytes = 8;

/// Finishes a record with the fields that sample_id_all adds (perf_event_open(2), struct
/// sample_id).
void finish(RecordBuffer& buffer, const When& when) noexcept {
  buffer.pad().add(when.pid).add(when.tid).add(when.time_ns).finish();
}

/// Adds a path of /proc/self/maps, in which the kernel writes a newline as "\012" (proc(5)).
void add_path(RecordBuffer& buffer, std::string_view path) noexcept {
  constexpr std::string_view kNewline = "\\012";
  for (;;) {
    const auto at = path.find(kNewline);
    buffer.add_bytes(std::as_bytes(std::span(path.substr(0, at))));
    if (at == std::string_view::npos)
      break;
    buffer.add('\n');
    path.remove_prefix(at + kNewline.size());
  }
  buffer.add('\0');
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
  buffer.begin(PERF_RECORD_COMM).add(when.pid).add(when.tid).add_string(name);
  finish(buffer, when);
}

void write_task(RecordBuffer& buffer, std::uint32_t type, const When& when) noexcept {
  buffer.begin(type).add(when.pid).add(when.pid).add(when.tid).add(when.pid).add(when.time_ns);
  finish(buffer, when);
}

void write_mapping(RecordBuffer& buffer, const When& when, const stream::MapsLine& map,
                   Bytes build_id) noexcept {
  constexpr std::uint32_t kRead = 1, kWrite = 2, kExecute = 4;
  constexpr std::uint32_t kShared = 1, kPrivate = 2;
  const bool has_id = !build_id.empty() && build_id.size() <= kBuildIdRoom;
  buffer
      .begin(PERF_RECORD_MMAP2,
             PERF_RECORD_MISC_USER | (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0))
      .add(when.pid)
      .add(when.pid)
      .add(map.start)
      .add(map.end - map.start)
      .add(map.file_offset);
  if (has_id) {  // in place of device, inode and generation
    constexpr std::array<std::byte, kBuildIdRoom> kZeros{};
    buffer.add(static_cast<std::uint32_t>(build_id.size()))
        .add_bytes(build_id)
        .add_bytes(Bytes(kZeros).first(kBuildIdRoom - build_id.size()));
  } else {
    buffer.add(map.device_major).add(map.device_minor).add(map.inode).add(std::uint64_t{0});
  }
  buffer.add((map.readable ? kRead : 0) | (map.writable ? kWrite : 0) | kExecute)
      .add(map.shared ? kShared : kPrivate);
  add_path(buffer, map.path.empty() ? "//anon" : map.path);
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
      .add(header.weight * period_ns)
      .add(std::uint64_t{PERF_SAMPLE_REGS_ABI_64});
  for (std::uint64_t mask = stream::kKnownRegisters; mask != 0; mask &= mask - 1)
    buffer.add(header.registers[static_cast<std::size_t>(
        stream::kDwarfNumbers[static_cast<std::size_t>(std::countr_zero(mask))])]);
  // The size of a whole stack is one word more than its copy, so that readers see where the stack
  // ends.
  const std::uint64_t copied = sample.stack.size() / kWordBytes * kWordBytes;
  const bool is_cut = (header.flags & kStackIsCut) != 0;
  buffer.add(is_cut ? copied : copied + kWordBytes).add_bytes(sample.stack.first(copied));
  if (!is_cut)
    buffer.add(std::uint64_t{0});
  buffer.add(copied).finish();
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
