// SPDX-License-Identifier: MIT
#include "base/parse_number.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>

using pe::parse_number;

BOOST_AUTO_TEST_SUITE(strict_numbers)

BOOST_AUTO_TEST_CASE(takes_the_whole_range) {
  BOOST_TEST(parse_number<std::uint64_t>("0").value() == 0u);
  BOOST_TEST(parse_number<std::uint64_t>("18446744073709551615").value() == UINT64_MAX);
  BOOST_TEST(parse_number<std::uint64_t>("ffffffff81000000", 16).value() == 0xffffffff81000000u);
}

BOOST_AUTO_TEST_CASE(refuses_what_is_not_exactly_a_number) {
  for (const char* text :
       {"", " 1", "1 ", "+1", "-1", "1.5", "0x10", "18446744073709551616", "1\r"})
    BOOST_TEST(!parse_number<std::uint64_t>(text).has_value(), "accepted '" << text << "'");
  BOOST_TEST(!parse_number<std::uint16_t>("65536").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
