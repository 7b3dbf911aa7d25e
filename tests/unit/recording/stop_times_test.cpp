// SPDX-License-Identifier: MIT
#include "recording/ptrace/stop_times.h"

#include <boost/test/unit_test.hpp>

using pe::recording::StopTimes;

BOOST_AUTO_TEST_SUITE(stop_times)

BOOST_AUTO_TEST_CASE(short_stops_leave_the_rate_as_it_is) {
  StopTimes times(1'000'000);
  BOOST_TEST(times.interval_ns() == 1'000'000u);
  for (int i = 0; i < 100; ++i)
    times.add_stop(20'000);
  BOOST_TEST(times.interval_ns() == 1'000'000u);
  BOOST_TEST(times.stops() == 100u);
  BOOST_TEST(times.total_ns() == 2'000'000u);
  BOOST_TEST(times.longest_ns() == 20'000u);
}

BOOST_AUTO_TEST_CASE(long_stops_lower_it_to_a_tenth_of_the_time) {
  StopTimes times(1'000'000);
  for (int i = 0; i < 100; ++i)
    times.add_stop(500'000);
  BOOST_TEST(times.interval_ns() == 5'000'000u);
  for (int i = 0; i < 2000; ++i)  // and back again
    times.add_stop(20'000);
  BOOST_TEST(times.interval_ns() == 1'000'000u);
}

BOOST_AUTO_TEST_CASE(one_long_stop_among_many_changes_little) {
  StopTimes times(1'000'000);
  for (int i = 0; i < 100; ++i)
    times.add_stop(20'000);
  times.add_stop(2'000'000);
  BOOST_TEST(times.interval_ns() == 1'000'000u);
  BOOST_TEST(times.longest_ns() == 2'000'000u);
}

BOOST_AUTO_TEST_CASE(the_first_stop_may_be_a_long_one) {
  StopTimes times(1'000'000);
  times.add_stop(1'400'000'000);
  BOOST_TEST(times.interval_ns() == 80'000'000u);
  for (int i = 0; i < 9; ++i)
    times.add_stop(100'000);
  BOOST_TEST(times.interval_ns() < 9'000'000u);
  BOOST_TEST(times.longest_ns() == 1'400'000'000u);
}

BOOST_AUTO_TEST_CASE(if_all_stops_are_long_a_few_of_them_lower_the_rate) {
  StopTimes times(1'000'000);
  for (int i = 0; i < 10; ++i)
    times.add_stop(1'000'000'000);
  BOOST_TEST(times.interval_ns() > 5'000'000'000u);
}

BOOST_AUTO_TEST_CASE(threads_are_a_crowd_if_looking_through_them_takes_long) {
  StopTimes times(1'000'000);
  times.add_round(2'400'000);
  BOOST_TEST(!times.is_crowded());
  times.add_round(2'800'000);
  BOOST_TEST(times.is_crowded());
  // They are stopped in turn.
  times.add_stop(60'000'000, /*sets_rate=*/false);
  BOOST_TEST(times.interval_ns() == 10'400'000u);
  BOOST_TEST(times.total_ns() == 60'000'000u);
  StopTimes stops(1'000'000);
  stops.add_stop(20'000'000);
  BOOST_TEST(!stops.is_crowded());
}

BOOST_AUTO_TEST_CASE(looking_through_many_threads_takes_a_quarter_of_a_cpu) {
  StopTimes times(1'000'000);
  for (int i = 0; i < 10; ++i)
    times.add_round(8'000'000);
  BOOST_TEST(times.interval_ns() == 32'000'000u);
}

BOOST_AUTO_TEST_SUITE_END()
