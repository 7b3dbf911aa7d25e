// Reads any text as the name of a tracepoint, as the name of a field, and as the format that
// describes the field.  An accepted name leads to no other file, and a found field is in the
// format.
//
// Input: the field's name, a newline, the format; or the data after a TRACING_DATA record.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "recording/counters/tracefs.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  const std::string_view field = text.substr(0, text.find('\n'));
  const std::string_view format = text.substr(std::min(size, field.size() + 1));
  if (const auto found = pe::stream::parse_tracepoint_field(format, field)) {
    const auto named = [&](std::string_view key, std::size_t number) {
      // Zeros may precede a number.
      const auto at = format.find(key);
      return at != format.npos && format.find(std::to_string(number), at) != format.npos;
    };
    if (format.find(field) == format.npos || !named("offset:", found->offset) ||
        !named("size:", found->size))
      std::abort();
  }
  // The same text is read as what follows a record.
  constexpr std::uint16_t kSize = 16;
  const perf_event_header header{pe::stream::kRecordTracingData, 0, kSize};
  std::string record(pe::bytes_of(header));
  record.resize(kSize);
  record += text;
  pe::stream::for_each_described_tracepoint(
      pe::stream::view_record(std::as_bytes(std::span(record))),
      [&record](const pe::stream::DescribedTracepoint& known) {
        if (known.format.data() < record.data() ||
            known.format.data() + known.format.size() > record.data() + record.size())
          std::abort();
      });
  if (pe::recording::is_tracepoint_name(std::string(text)) &&
      (std::count(text.begin(), text.end(), ':') != 1 || text.find_first_of("/. \n") != text.npos ||
       text.starts_with(':') || text.ends_with(':')))
    std::abort();
  return 0;
}
