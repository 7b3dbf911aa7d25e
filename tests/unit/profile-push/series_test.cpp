// SPDX-License-Identifier: MIT
#include "profile-push/series.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>

namespace {

using pe::push::is_app_name;
using pe::push::parse_label;
using pe::push::plain_value;
using pe::push::series_text;

}  // namespace

BOOST_AUTO_TEST_SUITE(series)

BOOST_AUTO_TEST_CASE(labels_are_in_the_order_of_their_names) {
  BOOST_TEST(series_text("app", {}).value() == "app{}");
  BOOST_TEST(series_text("app", {{"b", "2"}, {"a", "1 2=3"}}).value() == "app{a=1 2=3,b=2}");
}

BOOST_AUTO_TEST_CASE(is_not_too_long_for_a_request) {
  const std::string value(2000, 'x');
  BOOST_TEST(series_text("app", {{"a", value}, {"b", value}}).has_value());
  BOOST_TEST(!series_text("app", {{"a", value}, {"b", value}, {"c", value}}).has_value());
}

BOOST_AUTO_TEST_CASE(names_are_plain) {
  for (const char* name : {"a", "my-app.cpu", "team/app_1"})
    BOOST_TEST(is_app_name(name), name);
  for (const char* name : {"", "a b", "a{}", "a=b", "a,b", "\xc3\xa9", "a\n"})
    BOOST_TEST(!is_app_name(name), name);
}

BOOST_AUTO_TEST_CASE(a_label_is_a_key_and_a_value) {
  const auto label = parse_label("_env.1=a=b {\xc3\xa9");
  BOOST_REQUIRE(label.has_value());
  BOOST_TEST(label->first == "_env.1");
  BOOST_TEST(label->second == "a=b {\xc3\xa9");
}

BOOST_AUTO_TEST_CASE(a_label_that_would_end_early_is_refused) {
  for (const char* text : {"", "a", "=b", "a=", "a-b=c", "1a=b", ".a=b", "a b=c", "a=b,c", "a=b}",
                           "a=b\nc", "a=\x7f", "a=\xff", "__name__=x", "\xc3\xa9=x"})
    BOOST_TEST(!parse_label(text).has_value(), "took '" << text << "'");
  BOOST_TEST(!parse_label(std::string(1025, 'a') + "=b").has_value());
  BOOST_TEST(!parse_label("a=" + std::string(2049, 'b')).has_value());
}

BOOST_AUTO_TEST_CASE(any_text_becomes_a_value) {
  BOOST_TEST(plain_value("host-1.example.com") == "host-1.example.com");
  BOOST_TEST(plain_value("a,b}\xff\n") == "a_b___");
}

BOOST_AUTO_TEST_SUITE_END()
