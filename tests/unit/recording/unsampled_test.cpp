// SPDX-License-Identifier: MIT
#include "recording/unsampled.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(unsampled)

using pe::recording::describe_unsampled;

BOOST_AUTO_TEST_CASE(time_that_samples_stand_for_is_not_told) {
  BOOST_TEST(describe_unsampled({.time_ns = 2'000'000'000, .period_ns = 10'000'000}, 200) == "");
  BOOST_TEST(describe_unsampled({.time_ns = 2'000'000'000, .period_ns = 10'000'000}, 203) == "");
}

BOOST_AUTO_TEST_CASE(the_ends_of_threads_are_not_told) {
  BOOST_TEST(describe_unsampled({.time_ns = 2'000'000'000, .period_ns = 10'000'000}, 191) == "");
  BOOST_TEST(describe_unsampled({.time_ns = 90'000'000, .period_ns = 10'000'000}, 0) == "");
}

BOOST_AUTO_TEST_CASE(time_without_samples_is_told_with_all_and_the_period) {
  const std::string all =
      describe_unsampled({.time_ns = 2'330'000'000, .period_ns = 10'101'010}, 2);
  BOOST_TEST(all.starts_with("2.31 of 2.33 s CPU time without samples"), all);
  BOOST_TEST(all.find("10.1 ms") != std::string::npos, all);
  BOOST_TEST(describe_unsampled({.time_ns = 2'000'000'000, .period_ns = 10'000'000}, 189) != "");
}

BOOST_AUTO_TEST_SUITE_END()
