// SPDX-License-Identifier: MIT
#include "stacktop/text_report.h"

#include <boost/test/unit_test.hpp>

using pe::stacktop::shortened;
using pe::stacktop::shown;

BOOST_AUTO_TEST_SUITE(frame_text)

BOOST_AUTO_TEST_CASE(nothing_that_steers_a_terminal_is_shown) {
  BOOST_TEST(shown("a\033[2Jb\r\t\x7f") == "a\\x1b[2Jb\\x0d\\x09\\x7f");
  BOOST_TEST(shown("\xC2\x9B"
                   "1m") == "\\xc2\\x9b1m");  // CSI in one character
  BOOST_TEST(shown("\xE2\x80\xAE"
                   "evil") == "\\xe2\\x80\\xaeevil");  // right-to-left override
  BOOST_TEST(shown("\x9B\xFF") == "\\x9b\\xff");
  BOOST_TEST(shown(std::string_view("a\0b", 3)) == "a\\x00b");
}

BOOST_AUTO_TEST_CASE(other_characters_are_shown_as_they_are) {
  BOOST_TEST(shown("größe<日本>::f(\"x\")") == "größe<日本>::f(\"x\")");
  BOOST_TEST(shown("") == "[no name]");
}

BOOST_AUTO_TEST_CASE(long_names_lose_their_middle) {
  BOOST_TEST(shortened("abcdefghij", 10) == "abcdefghij");
  BOOST_TEST(shortened("abcdefghij", 9) == "abc...hij");
  BOOST_TEST(shortened("abcdefghij", 8) == "abc...ij");
  BOOST_TEST(shortened("abcdefghij", 3) == "...");
  BOOST_TEST(shortened("abcdefghij", 0) == "");
}

BOOST_AUTO_TEST_CASE(characters_are_not_cut_in_two) {
  BOOST_TEST(shortened("ääääääää", 7) == "ää...ää");
}

BOOST_AUTO_TEST_SUITE_END()
