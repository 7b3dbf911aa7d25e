// SPDX-License-Identifier: MIT
#include "stream/records/tracepoint.h"

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <span>
#include <string>

using pe::stream::parse_tracepoint_field;

BOOST_AUTO_TEST_SUITE(tracepoint)

BOOST_AUTO_TEST_CASE(fields_are_found_by_their_whole_name) {
  constexpr const char* kFormat =
      "name: sched_switch\nID: 372\nformat:\n"
      "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
      "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n"
      "print fmt: \"prev_state=%s\", REC->prev_state\n";
  const auto field = parse_tracepoint_field(kFormat, "prev_state");
  BOOST_REQUIRE(field.has_value());
  BOOST_TEST(field->offset == 32u);
  BOOST_TEST(field->size == 8u);
  BOOST_TEST(!parse_tracepoint_field(kFormat, "state").has_value());
  BOOST_TEST(!parse_tracepoint_field("\tfield:long x;\toffset:a;\tsize:8;\n", "x").has_value());
  BOOST_TEST(!parse_tracepoint_field("\tfield:long x;\toffset:4;\n\tsize:8;\n", "x").has_value());
  BOOST_TEST(!parse_tracepoint_field("", "x").has_value());
}

BOOST_AUTO_TEST_CASE(a_recording_names_tracepoints_and_their_fields) {
  const auto sized = [](const std::string& text) {
    return std::string(pe::bytes_of(std::uint64_t{text.size()})) + text;
  };
  const auto number = [](std::uint32_t value) { return std::string(pe::bytes_of(value)); };
  const std::string format =
      "name: kmalloc\nID: 658\nformat:\n"
      "\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n"
      "\tfield:char name[16];\toffset:32;\tsize:16;\tsigned:0;\n";
  const std::string data = std::string("\x17\x08\x44tracing0.6\0\0\x08", 16) + number(4096) +
                           std::string("header_page", 12) + sized("p") +
                           std::string("header_event", 13) + sized("") + number(0) + number(1) +
                           std::string("kmem", 5) + number(1) + sized(format);
  const auto described = [](const std::string& bytes) {
    constexpr std::uint16_t kHeader = 16;
    const perf_event_header header{pe::stream::kRecordTracingData, 0, kHeader};
    std::string record(pe::bytes_of(header));
    record.resize(kHeader);
    record += bytes;
    std::string found;
    const bool is_whole = pe::stream::for_each_described_tracepoint(
        pe::stream::view_record(std::as_bytes(std::span(record))),
        [&](const pe::stream::DescribedTracepoint& known) {
          found += fmt::format("{}:{} {} {}", known.group, known.name, known.id,
                               pe::stream::parse_tracepoint_fields(known.format).size());
        });
    return found + (is_whole ? "" : "!");
  };
  BOOST_TEST(described(data) == "kmem:kmalloc 658 2");
  for (std::size_t size = 0; size < data.size(); ++size)
    BOOST_TEST(described(data.substr(0, size)) == "!");
  std::string big_endian = data;
  big_endian[14] = 1;
  BOOST_TEST(described(big_endian) == "!");
}

BOOST_AUTO_TEST_CASE(numbers_have_their_size_and_sign) {
  using pe::stream::number_at;
  const std::string data("\xff\xff\xff\xff\x01\x02\x03\x04", 8);
  const pe::Bytes bytes = std::as_bytes(std::span(data));
  BOOST_TEST(number_at(bytes, 0, 4, true).value() == -1);
  BOOST_TEST(number_at(bytes, 0, 4, false).value() == 0xffffffff);
  BOOST_TEST(number_at(bytes, 4, 2, true).value() == 0x201);
  BOOST_TEST(!number_at(bytes, 4, 8, true).has_value());
  BOOST_TEST(!number_at(bytes, ~std::uint64_t{0}, 4, true).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
