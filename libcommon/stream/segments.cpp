// SPDX-License-Identifier: MIT
#include "stream/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "stream/records/event.h"
#include "stream/records/sample.h"
#include "stream/stream_reader.h"

namespace pe::stream {
namespace {

/// Segments of one start of the machine, by their numbers in the input.
struct Group {
  std::size_t first = 0, end = 0;
  std::vector<SegmentHead> heads;
};

/// Returns the head of the file that the input reads.
std::optional<SegmentHead> head_of(const Input& input) {
  std::array<std::byte, kPipeHeaderBytes + sizeof(perf_event_header) + sizeof(SegmentHead)> bytes{};
  if (input.read_at(0, bytes) != bytes.size() || U64View(bytes)[0] != kMagic)
    return std::nullopt;
  ByteReader reader(Bytes(bytes).subspan(kPipeHeaderBytes));
  const auto record = take_record(reader);
  return record ? parse_segment_head(*record) : std::nullopt;
}

std::vector<Group> groups_of(Input& input) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < input.segments().size(); ++i) {
    const auto head = input.open_segment(i) ? head_of(input) : std::nullopt;
    if (!head)
      continue;
    if (groups.empty() || groups.back().heads.back().boot != head->boot)
      groups.push_back({.first = i, .end = i, .heads = {}});
    groups.back().heads.push_back(*head);
    groups.back().end = i + 1;
  }
  return groups;
}

/// Narrows a copy of the input to one group's last segment, and returns its last time.
std::uint64_t end_of(const Input& input, const Group& group) {
  Input last = input.again();
  if (!last.choose_segments(group.end - 1, group.end))
    return group.heads.back().start_ns / kNsPerUs;
  return std::max(last_sample_us(last), group.heads.back().start_ns / kNsPerUs);
}

RecordingTimes times_of(const Input& input, const Group& group) {
  const SegmentHead& first = group.heads.front();
  const SegmentHead& last = group.heads.back();
  return {.first_us = first.start_ns / kNsPerUs,
          .last_us = end_of(input, group),
          .clock = ClockData{.wall_ns = last.wall_ns, .clock_ns = last.start_ns}};
}

std::string wall_text(const RecordingTimes& times, std::uint64_t us) {
  const auto wall_ns = times.clock->wall_of(us * kNsPerUs);
  const auto seconds = static_cast<std::time_t>(wall_ns.value_or(0) / kNsPerSecond);
  std::tm date{};
  std::array<char, sizeof "2026-11-26T14:05:00"> text{};
  if (::localtime_r(&seconds, &date) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &date) == 0)
    return "?";
  return text.data();
}

}  // namespace

std::optional<SegmentHead> parse_segment_head(const Record& record) {
  ByteReader body(record.body());
  const auto boot = body.take<std::uint64_t>(), run = body.take<std::uint64_t>(),
             number = body.take<std::uint64_t>(), start_ns = body.take<std::uint64_t>(),
             wall_ns = body.take<std::uint64_t>(), head_bytes = body.take<std::uint64_t>();
  if (!record.is_segment_head() || !head_bytes)
    return std::nullopt;
  return SegmentHead{.boot = *boot,
                     .run = *run,
                     .number = *number,
                     .start_ns = *start_ns,
                     .wall_ns = *wall_ns,
                     .head_bytes = *head_bytes};
}

std::string_view build_segment_head(RecordBuilder& builder, const SegmentHead& head) {
  return builder.begin(kRecordFinishedRound, kMiscMoreRounds | kMiscSegment)
      .add(head.boot)
      .add(head.run)
      .add(head.number)
      .add(head.start_ns)
      .add(head.wall_ns)
      .add(head.head_bytes)
      .finish();
}

std::size_t choose_last_boot(Input& input) {
  const std::size_t all = input.segments().size();
  const auto groups = groups_of(input);
  // Without a good segment the reader tells what is wrong with the first one.
  const std::size_t first = groups.empty() ? 0 : groups.back().first;
  const std::size_t end = groups.empty() ? all : groups.back().end;
  input.choose_segments(first, end);
  return all - (end - first);
}

RecordingTimes choose_times(Input& input, const TimeRange& range) {
  const auto groups = groups_of(input);
  std::string kept;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const RecordingTimes times = times_of(input, *group);
    const TimeBounds bounds = range.in(times);
    if (bounds.from_us <= times.last_us && bounds.to_us >= times.first_us) {
      std::size_t first = 0, end = group->heads.size();
      while (first + 1 < end && group->heads[first + 1].start_ns / kNsPerUs <= bounds.from_us)
        ++first;
      while (end > first + 1 && group->heads[end - 1].start_ns / kNsPerUs > bounds.to_us)
        --end;
      // A damaged segment in between has no head here.
      if (group->heads.size() == group->end - group->first)
        input.choose_segments(group->first + first, group->first + end);
      else
        input.choose_segments(group->first, group->end);
      return times;
    }
    kept += fmt::format("{}{} to {}", kept.empty() ? "" : ", and ",
                        wall_text(times, times.first_us), wall_text(times, times.last_us));
  }
  throw Error(fmt::format("--time: nothing was kept from then: {} has {}", input.name(),
                          kept.empty() ? "no whole segment" : kept));
}

std::uint64_t last_sample_us(Input& input) {
  StreamReader reader(input);
  EventTable events;
  std::uint64_t last_ns = 0;
  while (const auto record = reader.next()) {
    if (record->type == kRecordHeaderAttr)
      events.add(*record);
    const Event* event = record->is_sample() ? events.find(*record) : nullptr;
    if (event != nullptr)
      last_ns = std::max(last_ns, time_of(*record, event->attr));
  }
  return last_ns / kNsPerUs;
}

}  // namespace pe::stream
