// SPDX-License-Identifier: MIT
#include "stackfold/options.h"

#include <boost/test/unit_test.hpp>

using pe::parse_duration_ns;

BOOST_AUTO_TEST_SUITE(parse_duration)

BOOST_AUTO_TEST_CASE(a_duration_is_a_number_and_a_unit) {
  BOOST_TEST(*parse_duration_ns("7ns") == 7U);
  BOOST_TEST(*parse_duration_ns("7us") == 7'000U);
  BOOST_TEST(*parse_duration_ns("100ms") == 100'000'000U);
  BOOST_TEST(*parse_duration_ns("0s") == 0U);
  BOOST_TEST(*parse_duration_ns("5m") == 300'000'000'000U);
}

BOOST_AUTO_TEST_CASE(anything_else_is_refused) {
  for (const char* text : {"", "1", "s", "1 s", " 1s", "1s ", "1.5s", "-1s", "+1s", "1S", "1d",
                           "1sm", "18446744073709551616ns", "18446744074s"})
    BOOST_TEST(!parse_duration_ns(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
