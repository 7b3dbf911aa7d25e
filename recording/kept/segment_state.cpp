// SPDX-License-Identifier: MIT
#include "recording/kept/segment_state.h"

#include <signal.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "recording/stream/whole_stream.h"
#include "stream/records/event.h"
#include "stream/records/sample.h"
#include "stream/stream_writer.h"

namespace pe::recording {
namespace {

std::string_view text_of(const stream::Record& record) {
  return {reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size()};
}

/// Appends a record whose body starts with a process and a thread, with others in their place.
void append_as(std::string& out, const std::string& record, std::uint32_t pid, std::uint32_t tid) {
  const std::array ids{pid, tid};
  const std::size_t place = out.size() + sizeof(perf_event_header);
  out += record;
  std::memcpy(out.data() + place, ids.data(), sizeof ids);
}

/// What a mapping costs beside its record.
constexpr std::size_t kMappingBytes = 160;

std::size_t cost_of(std::string_view record) { return record.size() + kMappingBytes; }

}  // namespace

void SegmentState::follow(const stream::Record& record) {
  switch (record.type) {
    case stream::kRecordHeaderAttr: {
      ByteReader body(record.body());
      const bool is_first = recording_.empty();
      layout_ = stream::take_attr(body).value_or(layout_);
      if (is_first)
        id_ = body.take<std::uint64_t>().value_or(0);
      recording_ += text_of(record);
      return;
    }
    case stream::kRecordHeaderFeature: {
      const auto feature = stream::parse_feature(record);
      if (feature && feature->feature != stream::kFeatureClockData)
        recording_ += text_of(record);
      return;
    }
    case stream::kRecordEventUpdate:
      recording_ += text_of(record);
      return;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
      return follow_mapping(record);
    case PERF_RECORD_COMM:
      return follow_name(record);
    case PERF_RECORD_FORK:
      return follow_fork(record);
    case PERF_RECORD_EXIT:
      return follow_end(record);
    default:
      return;
  }
}

SegmentState::Kept SegmentState::without_time(const stream::Record& record) const {
  auto text = std::make_shared<std::string>(text_of(record));
  const std::size_t trailer = stream::trailer_bytes(layout_);
  const std::size_t before =
      (layout_.sample_type & PERF_SAMPLE_TID) != 0 ? sizeof(std::uint64_t) : 0;
  if ((layout_.sample_type & PERF_SAMPLE_TIME) != 0 && trailer >= before + sizeof(std::uint64_t) &&
      text->size() >= sizeof(perf_event_header) + trailer)
    std::memset(text->data() + text->size() - trailer + before, 0, sizeof(std::uint64_t));
  return text;
}

SegmentState::Mappings& SegmentState::writable(Process& process) {
  if (!process.mappings) {
    process.mappings = std::make_shared<Mappings>();
  } else if (process.mappings.use_count() > 1) {
    process.mappings = std::make_shared<Mappings>(*process.mappings);
    bytes_ += process.mappings->bytes;
  }
  return *process.mappings;
}

void SegmentState::drop(Mappings& mappings, std::uint64_t place) {
  const auto item = mappings.by_place.find(place);
  const auto [first, end] = mappings.places.equal_range(item->second.start);
  for (auto at = first; at != end; ++at)
    if (at->second == place) {
      mappings.places.erase(at);
      break;
    }
  const std::size_t cost = cost_of(*item->second.record);
  mappings.bytes -= cost;
  bytes_ -= cost;
  mappings.by_place.erase(item);
}

/// Drops the older half of a process's mappings if it, or all together, have too many.
void SegmentState::limit(Mappings& mappings) {
  if (mappings.bytes <= kMostBytesOfOne && bytes_ <= kMostBytes)
    return;
  for (std::size_t left = mappings.by_place.size() / 2; left > 0; --left, ++forgotten_)
    drop(mappings, mappings.by_place.begin()->first);
}

void SegmentState::follow_mapping(const stream::Record& record) {
  const auto map = stream::parse_mmap(record);
  if (!map)
    return;
  if ((record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
    constexpr std::size_t kMostKernel = std::size_t{1} << 20;
    if (kernel_.size() < kMostKernel)
      kernel_ += *without_time(record);
    return;
  }
  Mappings& mappings = writable(processes_[map->pid]);
  const std::uint64_t end = map->start + map->size;
  for (auto at = mappings.places.lower_bound(map->start);
       at != mappings.places.end() && at->first < end;) {
    const std::uint64_t place = (at++)->second;
    if (mappings.by_place.at(place).end <= end)
      drop(mappings, place);
  }
  const std::uint64_t place = ++places_;
  const auto& added =
      mappings.by_place
          .emplace(place, Mapping{.start = map->start, .end = end, .record = without_time(record)})
          .first->second;
  mappings.places.emplace(map->start, place);
  mappings.bytes += cost_of(*added.record);
  bytes_ += cost_of(*added.record);
  limit(mappings);
}

void SegmentState::follow_name(const stream::Record& record) {
  const auto comm = stream::parse_comm(record);
  if (!comm)
    return;
  Process& process = processes_[comm->pid];
  auto kept = std::make_shared<std::string>(*without_time(record));
  constexpr int kOnce = PERF_RECORD_MISC_COMM_EXEC | stream::kMiscOfNextExec;
  const auto misc = static_cast<std::uint16_t>(record.misc & ~kOnce);
  std::memcpy(kept->data() + offsetof(perf_event_header, misc), &misc, sizeof misc);
  if (comm->is_of_next_exec) {
    process.next_command_line = std::move(kept);
    return;
  }
  if (comm->is_exec) {
    forget_mappings(process);
    process.names.clear();
    process.command_line = std::exchange(process.next_command_line, nullptr);
  }
  process.names[comm->tid] = kept;
  if (!comm->command_line.empty())
    process.command_line = std::move(kept);
}

void SegmentState::follow_fork(const stream::Record& record) {
  const auto task = stream::parse_task(record);
  if (!task)
    return;
  const auto parent = processes_.find(task->parent_pid);
  Kept name;
  if (parent != processes_.end())
    if (const auto found = parent->second.names.find(task->parent_tid);
        found != parent->second.names.end())
      name = found->second;
  if (task->pid == task->parent_pid) {
    processes_[task->pid].names[task->tid] = std::move(name);
    return;
  }
  Process child;
  child.parent = task->parent_pid;
  child.names[task->tid] = std::move(name);
  if (parent != processes_.end()) {
    child.mappings = parent->second.mappings;
    child.command_line = parent->second.command_line;
  }
  if (const auto old = processes_.find(task->pid); old != processes_.end())
    forget(old);
  processes_[task->pid] = std::move(child);
}

void SegmentState::follow_end(const stream::Record& record) {
  const auto task = stream::parse_task(record);
  const auto process = task ? processes_.find(task->pid) : processes_.end();
  if (process == processes_.end())
    return;
  process->second.names.erase(task->tid);
  if (process->second.names.empty())
    forget(process);
}

void SegmentState::forget_mappings(Process& process) {
  if (process.mappings && process.mappings.use_count() == 1)
    bytes_ -= process.mappings->bytes;
  process.mappings.reset();
}

void SegmentState::forget(std::map<std::uint32_t, Process>::iterator process) {
  forget_mappings(process->second);
  processes_.erase(process);
}

void SegmentState::forget_ended() {
  for (auto process = processes_.begin(); process != processes_.end();) {
    const auto next = std::next(process);
    const auto pid = static_cast<pid_t>(process->first);
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH)
      forget(process);
    process = next;
  }
}

std::optional<std::uint64_t> SegmentState::first_time(std::string_view records) const {
  ByteReader reader(std::as_bytes(std::span(records)));
  while (const auto record = stream::take_record(reader))
    if (const std::uint64_t time_ns = stream::time_of(*record, layout_); time_ns != 0)
      return time_ns;
  return std::nullopt;
}

std::string SegmentState::lost(std::uint64_t samples, std::uint64_t time_ns) const {
  stream::RecordBuilder builder;
  builder.begin(PERF_RECORD_LOST).add(id_).add(samples);
  stream::add_sample_id(builder, layout_, {.time_ns = time_ns, .id = id_});
  return std::string(builder.finish());
}

void SegmentState::append_recording(std::string& out) const {
  out += recording_;
  stream::RecordBuilder builder;
  out += builder.begin(stream::kRecordHeaderFeature)
             .add(std::uint64_t{stream::kFeatureClockData})
             .add_bytes(clock_data())
             .pad()
             .finish();
}

void SegmentState::append_processes(std::string& out) const {
  out += kernel_;
  stream::RecordBuilder builder;
  for (const auto& [pid, process] : processes_) {
    if (process.parent == 0)
      continue;
    builder.begin(PERF_RECORD_FORK).add(std::array{pid, process.parent, pid, process.parent});
    builder.add(std::uint64_t{0});  // the body's own time
    stream::add_sample_id(builder, layout_, {.pid = pid, .tid = pid});
    out += builder.finish();
  }
  for (const auto& [pid, process] : processes_) {
    if (process.command_line)
      append_as(out, *process.command_line, pid, pid);
    for (const auto& [tid, name] : process.names)
      if (name && (tid != pid || name != process.command_line))
        append_as(out, *name, pid, tid);
    if (process.mappings)
      for (const auto& [place, mapping] : process.mappings->by_place)
        append_as(out, *mapping.record, pid, pid);
  }
}

}  // namespace pe::recording
