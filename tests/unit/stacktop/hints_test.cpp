// SPDX-License-Identifier: MIT
#include "stacktop/hints.h"

#include <boost/test/unit_test.hpp>
#include <string>

using pe::stacktop::Hints;

BOOST_AUTO_TEST_SUITE(hints)

namespace {

std::string text_for(const Hints& hints, const std::string& function) {
  const std::size_t found = hints.find(function);
  return found < hints.size() ? hints[found].text : "none";
}

}  // namespace

BOOST_AUTO_TEST_CASE(expressions_share_the_text_below_them) {
  Hints hints;
  hints.add("^mem\nset$\n  Less\n\tof it.\n", "f");
  BOOST_TEST(hints.size() == 1U);
  BOOST_TEST(text_for(hints, "memcpy") == "Less of it.");
  BOOST_TEST(text_for(hints, "bitset") == "Less of it.");
  BOOST_TEST(text_for(hints, "settle") == "none");
  BOOST_TEST(hints.ignored() == 0U);
}

BOOST_AUTO_TEST_CASE(the_first_rule_that_matches_is_taken) {
  Hints hints;
  hints.add("cpy\n a\n", "own");
  hints.add("^memcpy$\n b\nmem\n c", "installed");
  BOOST_TEST(text_for(hints, "memcpy") == "a");
  BOOST_TEST(text_for(hints, "memset") == "c");
}

BOOST_AUTO_TEST_CASE(marks_are_no_part_of_a_name) {
  Hints hints;
  hints.add("^schedule$\n x", "f");
  BOOST_TEST(text_for(hints, "schedule_[k]") == "x");
}

BOOST_AUTO_TEST_CASE(comments_and_empty_lines_mean_nothing) {
  Hints hints;
  hints.add("# head\n\na\r\n# between\n\n  text\r\n   \n  goes on\n", "f");
  BOOST_TEST(text_for(hints, "a") == "text goes on");
  BOOST_TEST(hints.ignored() == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_no_rule_is_counted_and_its_place_told) {
  Hints hints;
  hints.add("  lost\na(\n  text\nb\n", "dir/own");
  BOOST_TEST(hints.size() == 0U);
  BOOST_TEST(hints.ignored() == 3U);
  BOOST_TEST(hints.first_ignored() == "dir/own:1: no expression above it: 'lost'");
}

BOOST_AUTO_TEST_CASE(a_wrong_expression_leaves_the_others_of_its_rule) {
  Hints hints;
  hints.add("a(\nb\n  text\n", "f");
  BOOST_TEST(text_for(hints, "b") == "text");
  BOOST_TEST(hints.ignored() == 1U);
  BOOST_TEST(hints.first_ignored() == "f:1: not a regular expression: 'a('");
}

BOOST_AUTO_TEST_CASE(expressions_are_bounded_in_number_and_in_size) {
  Hints many;
  for (int i = 0; i < 4100; ++i)
    many.add("a\n  x\n", "f");
  BOOST_TEST(many.size() == 4096U);
  BOOST_TEST(many.ignored() == 4U);
  BOOST_TEST(many.first_ignored() == "f:1: too many expressions before it: 'a'");
  Hints large;
  for (int i = 0; i < 200; ++i)
    large.add("(\\pL{50}){3}\n  x\n", "f");
  BOOST_TEST(large.size() < 200U);
  BOOST_TEST(large.ignored() > 0U);
}

BOOST_AUTO_TEST_CASE(an_expression_without_text_is_told_by_its_own_line) {
  Hints hints;
  hints.add("a\n  x\nb\nc\n", "f");
  BOOST_TEST(hints.first_ignored() == "f:3: no text below it: 'b'");
}

BOOST_AUTO_TEST_SUITE_END()
