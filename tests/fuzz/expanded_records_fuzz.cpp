// Reads any bytes as compressed records.  They expand to complete records of the kernel's types
// within the bounds.  After damage, no record follows.
// SPDX-License-Identifier: MIT
#include <cstdlib>

#include "stream/stream_reader.h"

namespace {

/// The next record of `reader`, as a COMPRESSED or COMPRESSED2 record.
std::optional<pe::stream::Record> take_compressed(pe::ByteReader& reader) {
  const auto header = pe::ByteReader(reader.left()).take<perf_event_header>();
  if (!header || header->size < sizeof *header)
    return std::nullopt;
  const auto bytes = reader.take_bytes(header->size);
  if (!bytes)
    return std::nullopt;
  pe::stream::Record record = pe::stream::view_record(*bytes);
  record.type =
      header->type % 2 == 0 ? pe::stream::kRecordCompressed2 : pe::stream::kRecordCompressed;
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::ByteReader reader(std::as_bytes(std::span(data, size)));
  pe::stream::ExpandedRecords expanded;
  while (const auto compressed = take_compressed(reader)) {
    const bool was_damaged = expanded.is_damaged();
    expanded.begin(*compressed);
    std::size_t bytes = 0;
    while (const auto record = expanded.next()) {
      perf_event_header header;
      std::memcpy(&header, record->bytes.data(), sizeof header);
      bytes += record->bytes.size();
      constexpr std::size_t kOfTheOneBefore = 65536;
      if (was_damaged || record->type >= pe::stream::kRecordFirstOfPerf ||
          header.size != record->bytes.size() ||
          bytes > pe::stream::ExpandedRecords::kMaxBytesOfOne + kOfTheOneBefore)
        std::abort();
    }
    if (expanded.next())
      std::abort();
  }
  return 0;
}
