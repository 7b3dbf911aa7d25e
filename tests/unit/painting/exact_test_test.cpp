// SPDX-License-Identifier: MIT
#include "painting/statistics/exact_test.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace pe::painting;

BOOST_AUTO_TEST_SUITE(exact_tests)

namespace {}  // namespace

// Fisher's lady tasting tea: 3 of 4 right has the one-sided p-value 17/70.
BOOST_AUTO_TEST_CASE(shares_have_the_p_value_of_fishers_test) {
  const double p = share_p_value({.hits = 1, .of = 4}, {.hits = 3, .of = 4});
  BOOST_TEST(p == 2 * 17.0 / 70, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(share_p_value({.hits = 3, .of = 4}, {.hits = 1, .of = 4}) == p,
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(share_p_value({.hits = 0, .of = 4}, {.hits = 4, .of = 4}) == 2 / 70.0,
             boost::test_tools::tolerance(1e-9));
}

// The one-sided p-value is (1/2)^20.
BOOST_AUTO_TEST_CASE(rates_have_the_p_value_of_a_fair_coin) {
  BOOST_TEST(rate_p_value({.hits = 0, .of = 1}, {.hits = 20, .of = 1}) == std::pow(2.0, -19),
             boost::test_tools::tolerance(1e-9));
  // The time before was twice as long; all 10 samples are in the shorter time.
  BOOST_TEST(rate_p_value({.hits = 0, .of = 2}, {.hits = 10, .of = 1}) == 2 * std::pow(3.0, -10),
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(equal_shares_are_no_surprise) {
  BOOST_TEST(share_p_value({.hits = 50, .of = 100}, {.hits = 50, .of = 100}) == 1.0);
  BOOST_TEST(share_p_value({.hits = 0, .of = 100}, {.hits = 0, .of = 100}) == 1.0);
  BOOST_TEST(share_p_value({.hits = 100, .of = 100}, {.hits = 100, .of = 100}) == 1.0);
  BOOST_TEST(share_p_value({.hits = 0, .of = 0}, {.hits = 5, .of = 5}) == 1.0);
  BOOST_TEST(rate_p_value({.hits = 7, .of = 1}, {.hits = 7, .of = 1}) == 1.0);
}

BOOST_AUTO_TEST_CASE(the_normal_tail_takes_over_without_a_jump) {
  // Variances just below and just above 10,000, where the method changes; z is 4 in both.
  const auto p_at = [](double samples) {
    const double half = samples / 2;
    const double more = 4 * std::sqrt(samples / 16) + 0.5;
    return share_p_value({.hits = half / 2 - more, .of = half},
                         {.hits = half / 2 + more, .of = half});
  };
  BOOST_TEST(p_at(158'000) == p_at(162'000), boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(nothing_can_be_less_likely_than_all_on_one_side) {
  for (const double hits : {1, 5, 20, 60}) {
    const double p = share_p_value({.hits = 0, .of = 10'000}, {.hits = hits, .of = 1000});
    BOOST_TEST(p <= smallest_p_value(hits, 10'000, 1000) * 1.0001);
    BOOST_TEST(p >= smallest_p_value(hits, 10'000, 1000) * 0.1);
  }
}

// Newcombe 1998, table II, method 10, for 56/70 and 48/80; 9/10 and 3/10; 0/10 and 0/20.
BOOST_AUTO_TEST_CASE(intervals_are_those_that_newcombe_printed) {
  const auto check = [](Seen before, Seen after, Interval printed) {
    const Interval found = share_interval(before, after, 1.959964);
    BOOST_TEST(std::abs(found.low - printed.low) < 0.0001);
    BOOST_TEST(std::abs(found.high - printed.high) < 0.0001);
  };
  check({.hits = 48, .of = 80}, {.hits = 56, .of = 70}, {.low = 0.0524, .high = 0.3339});
  check({.hits = 3, .of = 10}, {.hits = 9, .of = 10}, {.low = 0.1705, .high = 0.8090});
  check({.hits = 0, .of = 20}, {.hits = 0, .of = 10}, {.low = -0.1611, .high = 0.2775});
}

BOOST_AUTO_TEST_CASE(rate_intervals_hold_the_change) {
  const Interval found = rate_interval({.hits = 100, .of = 1}, {.hits = 160, .of = 1}, 1.96);
  BOOST_TEST(found.low > 25);
  BOOST_TEST(found.low < 35);
  BOOST_TEST(found.high > 85);
  BOOST_TEST(found.high < 95);
}

BOOST_AUTO_TEST_SUITE_END()
