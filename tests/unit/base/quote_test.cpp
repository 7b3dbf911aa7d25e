// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(quote)

BOOST_AUTO_TEST_CASE(letters_of_all_scripts_stay) {
  BOOST_TEST(pe::printable("operator\"\"_\xc3\xa4 \xd7\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80") ==
             "operator\"\"_\xc3\xa4 \xd7\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80");
  BOOST_TEST(pe::printable("\xef\xbf\xbd") == "\xef\xbf\xbd");  // U+FFFD itself
}

BOOST_AUTO_TEST_CASE(control_characters_of_both_sets_are_escaped) {
  BOOST_TEST(pe::printable("a\x1b[31m\n\x7f") == "a\\x1b[31m\\x0a\\x7f");
  BOOST_TEST(pe::printable("\xc2\x9b") == "\\xc2\\x9b");  // CSI in one character
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_utf8_are_escaped) {
  BOOST_TEST(pe::printable("\x9b\xff\xe2\x80") == "\\x9b\\xff\\xe2\\x80");
}

BOOST_AUTO_TEST_CASE(characters_that_change_the_direction_of_text_are_escaped) {
  BOOST_TEST(pe::printable("a\xe2\x80\xae"
                           "b") == "a\\u202eb");
  BOOST_TEST(pe::printable("\xd8\x9c\xe2\x80\x8f\xe2\x81\xa6\xe2\x80\xa8") ==
             "\\u061c\\u200f\\u2066\\u2028");
}

BOOST_AUTO_TEST_SUITE_END()
