// Reads any bytes as a sample stream.  The reader returns nothing that was not in them.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "stream/records/callchain.h"
#include "stream/session.h"
#include "support/memory_input.h"

namespace {

struct Totals {
  std::size_t records = 0;
  std::size_t bytes = 0;   ///< of the records in the input
  std::size_t frames = 0;  ///< of all samples
};

/// The reader makes records of the attrs in a perf.data file; these do not count.
bool is_made(const pe::stream::Record& record) {
  return record.type == pe::stream::kRecordHeaderAttr;
}

Totals read_all(pe::stream::Session& session) {
  Totals totals;
  while (const auto record = session.next()) {
    if (is_made(*record))
      continue;
    ++totals.records;
    if (const auto& events = session.events().all(); !events.empty()) {
      constexpr std::size_t kLeastBytes = 16;  // pid and tid, and the time
      const auto change = pe::stream::parse_switch(*record, events.front().attr);
      if (change && record->body().size() < kLeastBytes)
        std::abort();
    }
    totals.bytes += record->bytes.size();
    if (!session.sample())
      continue;
    if (session.event() == nullptr)
      std::abort();
    const pe::stream::Sample& sample = *session.sample();
    pe::stream::for_each_frame(sample, record->misc, [&](const pe::stream::CallChainEntry& entry) {
      ++totals.frames;
      (void)session.processes().find(sample.pid, entry.lookup_address);
    });
    if (session.processes().comm(sample.pid, sample.tid).size() >
        totals.bytes + sizeof(":4294967295"))
      std::abort();
  }
  return totals;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::Input input = pe::testing::memory_input({data, size});
  try {
    pe::stream::Session session(input);
    const Totals totals = read_all(session);
    constexpr std::size_t kAddressBytes = 8;
    // The content of compressed records has bounds of its own: see expanded_records_fuzz.
    if (std::string_view(data, size).find("\x28\xb5\x2f\xfd") != std::string_view::npos)
      return 0;
    if (totals.bytes > size || session.counts().samples > totals.records ||
        totals.frames > session.counts().samples + size / kAddressBytes)
      std::abort();
  } catch (const pe::Error&) {
    return 0;  // not a stream
  }
  return 0;
}
