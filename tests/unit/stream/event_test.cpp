// SPDX-License-Identifier: MIT
#include "stream/records/event.h"

#include <boost/test/unit_test.hpp>

#include "stream/stream_reader.h"
#include "stream/stream_writer.h"
#include "support/memory_input.h"
#include "support/stream_builder.h"

using namespace pe::stream;

BOOST_AUTO_TEST_SUITE(event)

namespace {

Record record_of(std::string_view bytes) { return view_record(std::as_bytes(std::span(bytes))); }

std::string attr_record(std::uint32_t attr_size, std::size_t bytes_given) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = attr_size;
  attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  std::string bytes(pe::bytes_of(attr));
  bytes.resize(bytes_given);
  RecordBuilder builder;
  return std::string(builder.begin(kRecordHeaderAttr).add_bytes(bytes).finish());
}

}  // namespace

BOOST_AUTO_TEST_CASE(attrs_of_every_version_are_read) {
  for (const std::uint32_t size : {64U, 72U, 128U, 4096U}) {
    EventTable events;
    BOOST_TEST(events.add(record_of(attr_record(size, size))));
    BOOST_TEST(events.all().at(0).name == "page-faults");
  }
}

BOOST_AUTO_TEST_CASE(an_attr_that_is_too_short_is_refused) {
  EventTable events;
  BOOST_TEST(!events.add(record_of(attr_record(63, 128))));
  BOOST_TEST(!events.add(record_of(attr_record(128, 127))));
  BOOST_TEST(!events.add(record_of(attr_record(128, 6))));
}

BOOST_AUTO_TEST_CASE(the_id_tells_which_event_a_record_is_of) {
  auto stream = pe::testing::StreamBuilder()
                    .event(7, "first")
                    .event(8, "second")
                    .sample({.id = 8})
                    .comm(5, 1, 1, "x");
  auto input = pe::testing::memory_input(stream.text());
  StreamReader reader(input);
  EventTable events;
  std::vector<std::string> found;
  while (const auto record = reader.next()) {
    if (record->type == kRecordHeaderAttr)
      BOOST_TEST(events.add(*record));
    else if (record->type == kRecordEventUpdate)
      BOOST_TEST(events.update(*record));
    else
      found.push_back(events.find(*record)->name);
  }
  BOOST_TEST(found == (std::vector<std::string>{"second", "first"}));
}

BOOST_AUTO_TEST_CASE(names_become_events_and_events_names) {
  perf_event_attr attr{};
  BOOST_TEST(set_event(attr, "cs"));
  BOOST_TEST(name_of(attr) == "context-switches");
  BOOST_TEST(!set_event(attr, "no-such"));
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = 0x133;
  BOOST_TEST(name_of(attr) == "type 2 config 0x133");
}

// The numbers are those of perf_event_open(2): cache, operation << 8, result << 16.
BOOST_AUTO_TEST_CASE(events_of_caches_have_the_names_of_perf) {
  perf_event_attr attr{};
  const auto config_of = [&attr](const char* name) {
    BOOST_TEST(set_event(attr, name), name);
    BOOST_TEST(attr.type == std::uint32_t{PERF_TYPE_HW_CACHE});
    return attr.config;
  };
  BOOST_TEST(config_of("L1-dcache-loads") == 0U);
  BOOST_TEST(config_of("L1-dcache-load-misses") == 0x1'0000U);
  BOOST_TEST(config_of("LLC-stores") == 0x102U);
  BOOST_TEST(config_of("iTLB-load-misses") == 0x1'0004U);
  BOOST_TEST(config_of("node-prefetch-misses") == 0x1'0206U);
  BOOST_TEST(!set_event(attr, "L1-dcache-"));
  BOOST_TEST(set_event(attr, "branch-misses"));
  BOOST_TEST(attr.type == std::uint32_t{PERF_TYPE_HARDWARE});
}

BOOST_AUTO_TEST_CASE(every_known_name_is_an_event) {
  perf_event_attr attr{};
  for (const std::string& name : known_event_names())
    BOOST_TEST(set_event(attr, name), name);
}

BOOST_AUTO_TEST_SUITE_END()
