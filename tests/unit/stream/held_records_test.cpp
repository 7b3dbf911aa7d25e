// SPDX-License-Identifier: MIT
#include "stream/ordered_reader.h"

#include <boost/test/unit_test.hpp>

#include <string>

#include "stream/stream_writer.h"

using namespace pe;
using stream::HeldRecords;

BOOST_AUTO_TEST_SUITE(held_records)

namespace {

constexpr std::uint32_t kType = 77;

std::string record_of(std::uint64_t value) {
  stream::RecordBuilder builder;
  return std::string(builder.begin(kType).add(value).finish());
}

Bytes bytes_of(const std::string& record) { return std::as_bytes(std::span(record)); }

}  // namespace

BOOST_AUTO_TEST_CASE(copied_records_and_those_in_place_come_in_order_of_time) {
  HeldRecords held;
  const std::string first = record_of(1);
  std::string second = record_of(2);
  held.hold(20, {bytes_of(second)});
  held.hold_in_place(10, bytes_of(first));
  second = record_of(3);  // this does not change the copy
  BOOST_TEST(held.bytes() == second.size());
  held.make_ready(15);
  const auto next = held.next();
  BOOST_TEST_REQUIRE(next.has_value());
  BOOST_TEST(next->record.bytes.data() == bytes_of(first).data());
  BOOST_TEST(!held.next().has_value());
  held.make_ready(20);
  const auto last = held.next();
  BOOST_TEST_REQUIRE(last.has_value());
  BOOST_TEST((last->record.bytes.size() == second.size() && last->time_ns == 20));
  BOOST_TEST(ByteReader(last->record.body()).take<std::uint64_t>().value() == 2u);
  BOOST_TEST(held.bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(a_record_in_place_is_held_until_the_next_is_asked_for) {
  HeldRecords held;
  const std::string record = record_of(1);
  held.hold_in_place(10, bytes_of(record));
  held.make_ready(10);
  BOOST_TEST(held.in_place() == 1u);
  BOOST_TEST(held.next().has_value());
  BOOST_TEST(held.in_place() == 1u);
  BOOST_TEST(!held.next().has_value());
  BOOST_TEST(held.in_place() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
