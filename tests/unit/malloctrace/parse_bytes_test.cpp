// SPDX-License-Identifier: MIT
#include "malloctrace/options.h"

#include <boost/test/unit_test.hpp>

#include <cstdint>

using pe::parse_bytes;

BOOST_AUTO_TEST_SUITE(numbers_of_bytes)

BOOST_AUTO_TEST_CASE(units_are_powers_of_1024) {
  BOOST_TEST(parse_bytes("0").value() == 0U);
  BOOST_TEST(parse_bytes("4097").value() == 4097U);
  BOOST_TEST(parse_bytes("512K").value() == 512U * 1024);
  BOOST_TEST(parse_bytes("3m").value() == 3U * 1024 * 1024);
  BOOST_TEST(parse_bytes("1024G").value() == std::uint64_t{1} << 40U);
}

BOOST_AUTO_TEST_CASE(refuses_what_is_not_exactly_one) {
  for (const char* text : {"", "K", "-1K", "1.5M", "1KB", "1 K", "1T", "1025G", "1048577M",
                           "99999999999999999999", "18446744073709551615G"})
    BOOST_TEST(!parse_bytes(text).has_value(), "accepted '" << text << "'");
}

BOOST_AUTO_TEST_SUITE_END()
