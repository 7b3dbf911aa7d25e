// SPDX-License-Identifier: MIT
#include "stream/records/sample.h"

#include <boost/test/unit_test.hpp>

#include "stream/stream_writer.h"

namespace {

using pe::stream::LostSamples;

bool add(LostSamples& lost, std::uint32_t type, std::uint64_t count, std::uint64_t time_ns,
         std::uint16_t misc = 0) {
  pe::stream::RecordBuilder builder;
  builder.begin(type, misc);
  if (type == PERF_RECORD_LOST)
    builder.add(std::uint64_t{7});
  const auto text = builder.add(count).finish();
  return lost.add(pe::stream::view_record(std::as_bytes(std::span(text))), time_ns);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lost_samples)

BOOST_AUTO_TEST_CASE(a_loss_that_is_told_twice_counts_once) {
  LostSamples lost;
  BOOST_TEST(add(lost, PERF_RECORD_LOST, 30, 1));
  BOOST_TEST(add(lost, PERF_RECORD_LOST, 12, 2));
  BOOST_TEST(add(lost, PERF_RECORD_LOST_SAMPLES, 40, 0));
  BOOST_TEST(add(lost, PERF_RECORD_LOST_SAMPLES, 2, 0));
  BOOST_TEST(lost.count() == 42u);
}

BOOST_AUTO_TEST_CASE(a_loss_that_no_later_record_tells_is_in_the_counters) {
  LostSamples lost;
  add(lost, PERF_RECORD_LOST, 30, 1);
  lost.add_counted(99);
  BOOST_TEST(lost.count() == 99u);
}

BOOST_AUTO_TEST_CASE(what_the_hardware_dropped_is_told_as_it_happens) {
  LostSamples lost;
  add(lost, PERF_RECORD_LOST, 30, 1);
  add(lost, PERF_RECORD_LOST_SAMPLES, 5, 2);
  BOOST_TEST(lost.count() == 35u);
}

BOOST_AUTO_TEST_CASE(what_a_filter_left_out_is_not_lost) {
  LostSamples lost;
  BOOST_TEST(add(lost, PERF_RECORD_LOST_SAMPLES, 5, 0, 1U << 15));
  BOOST_TEST(lost.count() == 0u);
}

BOOST_AUTO_TEST_CASE(a_record_without_a_count_is_malformed) {
  LostSamples lost;
  pe::stream::RecordBuilder builder;
  for (const std::uint32_t type : {PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES}) {
    const auto text = builder.begin(type).add(std::uint32_t{1}).finish();
    BOOST_TEST(!lost.add(pe::stream::view_record(std::as_bytes(std::span(text))), 1));
  }
  BOOST_TEST(lost.count() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
