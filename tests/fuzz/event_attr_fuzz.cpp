// Reads any bytes as the description of an event, and the rest as a sample of this event.  All data
// of the sample is within its record.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stream/records/event.h"
#include "stream/records/sample.h"
#include "stream/stream_writer.h"

namespace {

using pe::Bytes;
using pe::stream::Record;

Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

void must_lie_in(Bytes part, Bytes whole) {
  if (!part.empty() &&
      (part.data() < whole.data() || part.data() + part.size() > whole.data() + whole.size()))
    std::abort();
}

void check_sample(const Record& record, const perf_event_attr& attr) {
  pe::stream::time_of(record, attr);
  const auto sample = pe::stream::parse_sample(record, attr);
  if (!sample)
    return;
  must_lie_in(sample->callchain.bytes(), record.bytes);
  must_lie_in(sample->user_regs.bytes(), record.bytes);
  must_lie_in(sample->user_stack, record.bytes);
}

}  // namespace

/// The first byte is the size of the event's description.
extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  constexpr std::size_t kMaxBytes = 32 * 1024;
  if (size == 0 || size > kMaxBytes)
    return 0;
  const std::string_view input(data + 1, size - 1);
  const std::string_view attr = input.substr(0, static_cast<unsigned char>(data[0]));
  pe::stream::RecordBuilder event_builder;
  pe::stream::RecordBuilder sample_builder;
  pe::stream::EventTable events;
  const std::string_view event_record =
      event_builder.begin(pe::stream::kRecordHeaderAttr).add_bytes(attr).finish();
  if (!events.add(pe::stream::view_record(as_bytes(event_record))))
    return 0;
  events.add(
      pe::stream::view_record(as_bytes(event_record)));  // so that the id has to be looked up
  if (events.all().front().name.empty())
    std::abort();
  for (const std::uint32_t type : {PERF_RECORD_SAMPLE, PERF_RECORD_COMM}) {
    const Record record = pe::stream::view_record(
        as_bytes(sample_builder.begin(type).add_bytes(input.substr(attr.size())).finish()));
    const pe::stream::Event* event = events.find(record);
    check_sample(record, event == nullptr ? events.all().front().attr : event->attr);
  }
  return 0;
}
