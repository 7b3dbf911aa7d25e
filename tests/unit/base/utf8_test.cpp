// SPDX-License-Identifier: MIT
#include "base/utf8.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(code_points_are_added) {
  std::string text = "=";
  for (const char32_t value : {U'A', U'\u00e9', U'\u20ac', U'\U0001f600', U'\U0010ffff'})
    pe::append_utf8(text, value);
  BOOST_TEST(text == "=A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
  BOOST_TEST(pe::is_valid_utf8(text));
}

BOOST_AUTO_TEST_CASE(values_that_are_no_code_points_are_replaced) {
  for (const std::uint32_t value : {0xd800U, 0xdfffU, 0x110000U, 0xffffffffU}) {
    std::string text;
    pe::append_utf8(text, value);
    BOOST_TEST(text == "\xef\xbf\xbd");
  }
}

BOOST_AUTO_TEST_SUITE_END()
