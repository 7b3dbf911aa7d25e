// SPDX-License-Identifier: MIT
#include "painting/statistics/noise.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace pe::painting;

BOOST_AUTO_TEST_SUITE(many_tests)

BOOST_AUTO_TEST_CASE(holm_steps_down_until_the_first_that_does_not_stand) {
  const Decision d = holm({0.04, 0.01, 0.03, 0.005}, 0.05);
  BOOST_TEST(d.standing == 2U);  // 0.005 <= 0.05/4, 0.01 <= 0.05/3, 0.03 > 0.05/2
  BOOST_TEST(d.threshold == 0.025);
}

BOOST_AUTO_TEST_CASE(all_answers_may_stand_or_none) {
  BOOST_TEST(holm({0.001, 0.002}, 0.05).standing == 2U);
  BOOST_TEST(holm({0.001, 0.002}, 0.05).threshold == 0.05);
  BOOST_TEST(holm({0.9, 0.03}, 0.05).standing == 0U);
  BOOST_TEST(holm({0.9, 0.03}, 0.05).threshold == 0.025);
  BOOST_TEST(holm({}, 0.05).standing == 0U);
}

BOOST_AUTO_TEST_CASE(questions_that_cannot_be_answered_are_not_asked) {
  // The first question can be answered among two; the other two cannot, not even alone.
  BOOST_TEST(asked_below({0.001, 0.2, 0.5}, 0.05) == 0.05);
  // Each of these 100 questions can be answered among 20 at most, so none is asked.  The two good
  // ones that follow are asked.
  std::vector<double> smallest(100, 0.05 / 20);
  BOOST_TEST(asked_below(smallest, 0.05) < 0.05 / 20);
  smallest.insert(smallest.end(), {1e-9, 1e-9});
  const double limit = asked_below(smallest, 0.05);
  BOOST_TEST(limit < 0.05 / 20);
  BOOST_TEST(limit >= 0.05 / 21);
  BOOST_TEST(asked_below({}, 0.05) == 0.05);
}

BOOST_AUTO_TEST_SUITE_END()
