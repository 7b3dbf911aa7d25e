// SPDX-License-Identifier: MIT
#include "stream/records/lost_samples.h"

#include "base/byte_reader.h"

namespace pe::stream {

bool LostSamples::add(const Record& record, std::uint64_t time_ns) {
  ByteReader reader(record.body());
  if (record.type == PERF_RECORD_LOST && !reader.skip(1, 8))  // the event's id comes first
    return false;
  const auto lost = reader.take<std::uint64_t>();
  if (!lost)
    return false;
  // perf (tools/lib/perf/include/perf/event.h): a filter that the user asked for dropped them.
  constexpr std::uint16_t kLeftOutByFilter = 1U << 15;
  const bool is_counted = record.type == PERF_RECORD_LOST_SAMPLES && time_ns == 0;
  if (is_counted && (record.misc & kLeftOutByFilter) != 0)
    return true;
  (is_counted ? counted_ : told_) += *lost;
  return true;
}

}  // namespace pe::stream
