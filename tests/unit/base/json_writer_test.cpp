// SPDX-License-Identifier: MIT
#include "base/io/json_writer.h"

#include <boost/test/unit_test.hpp>

#include "support/string_output.h"

BOOST_AUTO_TEST_SUITE(json_writer)

namespace {

template <typename Value>
std::string json_of(const Value& value) {
  pe::StringOutput out;
  pe::JsonWriter(out).value(value);
  return out.text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(texts_are_valid_whatever_they_hold) {
  BOOST_TEST(json_of("a\"b\\c\n\x01\x7f") == R"("a\"b\\c\n\u0001\u007f")");
  BOOST_TEST(json_of("ä\xFF\xC2") == "\"ä\uFFFD\uFFFD\"");
  BOOST_TEST(json_of("") == "\"\"");
}

BOOST_AUTO_TEST_CASE(numbers_have_all_their_digits) {
  BOOST_TEST(json_of(~std::uint64_t{0}) == "18446744073709551615");
  BOOST_TEST(json_of(-1) == "-1");
  BOOST_TEST(json_of(1.0) == "1");
  BOOST_TEST(json_of(0.1) == "0.1");
}

BOOST_AUTO_TEST_CASE(nothing_becomes_null) {
  BOOST_TEST(json_of(std::nullopt) == "null");
  BOOST_TEST(json_of(std::optional<int>()) == "null");
  BOOST_TEST(json_of(std::optional(true)) == "true");
}

BOOST_AUTO_TEST_CASE(lines_break_after_commas_and_before_brackets) {
  pe::StringOutput out;
  pe::JsonWriter json(out);
  json.start_array();
  json.break_line();
  json.value(1);
  json.break_line("  ");
  json.value("\x7f");
  json.break_line();
  json.end_array();
  BOOST_TEST(out.text == "[\n1,\n  \"\\u007f\"\n]");
}

BOOST_AUTO_TEST_CASE(a_long_text_is_whole) {
  const std::string text(100'000, 'x');
  BOOST_TEST(json_of(text) == '"' + text + '"');
}

BOOST_AUTO_TEST_SUITE_END()
