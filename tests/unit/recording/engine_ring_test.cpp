// SPDX-License-Identifier: MIT
#include "recording/stream/engine_records.h"

#include <poll.h>

#include <boost/test/unit_test.hpp>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "stream/stream_writer.h"
#include "support/costly.h"

using pe::recording::EngineRing;

BOOST_AUTO_TEST_SUITE(engine_ring)

namespace {

bool is_readable(const EngineRing& ring) {
  pollfd polled{ring.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

/// A record of this size, full of one number.
bool write(EngineRing& ring, std::size_t bytes, std::uint64_t number = 0, bool is_sample = true) {
  pe::stream::RecordBuilder builder;
  builder.begin(is_sample ? PERF_RECORD_SAMPLE : PERF_RECORD_COMM);
  for (std::size_t at = sizeof(perf_event_header); at < bytes; at += sizeof number)
    builder.add(number);
  return ring.write(std::as_bytes(std::span(builder.finish())), is_sample);
}

/// The numbers of the records that have come, each of which must be whole.
std::vector<std::uint64_t> read(EngineRing& ring) {
  std::vector<std::uint64_t> numbers;
  ring.rings().front().drain([&](const pe::stream::Record& record) {
    const pe::stream::U64View body(record.body());
    for (std::size_t i = 0; i < body.size(); ++i)
      BOOST_TEST_REQUIRE(body[i] == body[0]);
    numbers.push_back(body[0]);
  });
  return numbers;
}

using Numbers = std::vector<std::uint64_t>;

}  // namespace

BOOST_AUTO_TEST_CASE(what_comes_is_read_in_order_and_wakes) {
  EngineRing ring(1 << 20);
  BOOST_TEST(!is_readable(ring));
  BOOST_TEST(write(ring, 16, 7));
  BOOST_TEST(write(ring, 4096, 8, false));
  BOOST_TEST(is_readable(ring));
  ring.check();
  BOOST_TEST(!is_readable(ring));
  BOOST_TEST((read(ring) == Numbers{7, 8}));
  BOOST_TEST(write(ring, 16, 9));
  BOOST_TEST(is_readable(ring));
  BOOST_TEST((read(ring) == Numbers{9}));
}

BOOST_AUTO_TEST_CASE(a_full_ring_refuses_samples_and_keeps_room_for_other_records) {
  EngineRing ring(1 << 16);
  std::size_t fitted = 0;
  while (write(ring, 4096, fitted))
    ++fitted;
  BOOST_TEST(fitted == 15u);
  BOOST_TEST(write(ring, 4096, 100, false));
  BOOST_TEST(!write(ring, 4096, 101, false));
  BOOST_TEST(read(ring).size() == 16u);
  BOOST_TEST(write(ring, 4096, 102));
  BOOST_TEST((read(ring) == Numbers{102}));
}

BOOST_AUTO_TEST_CASE(records_are_whole_however_often_the_ring_is_filled, *pe::tests::costly()) {
  EngineRing ring(1 << 16);
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 20'000;)
      i += write(ring, 16 + i % 500 * 8, i) ? 1 : 0;
  });
  std::uint64_t next = 0;
  while (next < 20'000)
    for (const std::uint64_t number : read(ring))
      BOOST_TEST_REQUIRE(number == next++);
  writer.join();
}

BOOST_AUTO_TEST_CASE(records_are_complete_as_far_as_the_engine_states) {
  EngineRing ring(1 << 16);
  BOOST_TEST(ring.complete_ns() == std::numeric_limits<std::uint64_t>::max());
  ring.complete_until(10);
  BOOST_TEST(ring.complete_ns() == 10u);
}

BOOST_AUTO_TEST_CASE(who_takes_samples_and_cannot_go_on_wakes_who_writes_them_and_tells_why) {
  EngineRing ring(1 << 16);
  BOOST_TEST(write(ring, 16));
  ring.fail(std::make_exception_ptr(std::bad_alloc()));
  BOOST_TEST(is_readable(ring));
  BOOST_CHECK_THROW(ring.check(), std::bad_alloc);
}

BOOST_AUTO_TEST_SUITE_END()
