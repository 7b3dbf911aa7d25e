// SPDX-License-Identifier: MIT
#include "painting/svg/escape.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "base/utf8.h"

using namespace std::string_literals;

namespace {

struct Escaped {
  std::string text;
  std::size_t replaced;
};

Escaped escaped(std::string_view text) {
  Escaped result;
  result.replaced = pe::painting::append_escaped(result.text, text);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(escape)

BOOST_AUTO_TEST_CASE(markup_becomes_text) {
  BOOST_TEST(escaped("<script>a && \"b\" > 'c' ]]> --").text ==
             "&lt;script&gt;a &amp;&amp; &quot;b&quot; &gt; &#39;c&#39; ]]&gt; --");
}

BOOST_AUTO_TEST_CASE(control_characters_are_replaced_and_counted) {
  const auto r = escaped("a\0b\x01\x1b[0m\x7f\xc2\x9b"s);
  BOOST_TEST(r.text == "a\uFFFDb\uFFFD\uFFFD[0m\uFFFD\uFFFD");
  BOOST_TEST(r.replaced == 5U);
  BOOST_TEST(escaped("a\tb").text == "a b");
  BOOST_TEST(escaped("a\tb").replaced == 0U);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_replaced_one_by_one) {
  // overlong, surrogate, beyond the last code point, cut short, stray bytes
  for (const auto& [bytes, expected] : {std::pair{"\xc0\xaf", 2U},
                                        {"\xed\xa0\x80", 3U},
                                        {"\xf4\x90\x80\x80", 4U},
                                        {"\xe2\x82", 2U},
                                        {"\x80", 1U},
                                        {"\xff", 1U},
                                        {"\xef\xbf\xbe", 1U}})
    BOOST_TEST(escaped(bytes).replaced == expected, bytes);
  BOOST_TEST(escaped("\xe2\x82z").text == "\uFFFD\uFFFDz");
}

BOOST_AUTO_TEST_CASE(good_utf8_stays) {
  const std::string text = "naïve::größe<€>𝒳\uFFFD";
  BOOST_TEST(escaped(text).text == "naïve::größe&lt;€&gt;𝒳\uFFFD");
  BOOST_TEST(escaped(text).replaced == 0U);
}

BOOST_AUTO_TEST_CASE(code_points_are_read_exactly) {
  std::string_view text = "\xf4\x8f\xbf\xbfé€";
  for (const char32_t expected : {0x10FFFF, 0xE9, 0x20AC})
    BOOST_TEST((pe::take_code_point(text).value == expected));
  BOOST_TEST(text.empty());
}

BOOST_AUTO_TEST_CASE(escaped_text_comes_back) {
  for (const bool as_ascii : {false, true}) {
    const std::string text = "a<b>&\"c\" 'd' &amp; ;& \u00e9\U0001F525";
    std::string escaped;
    pe::painting::append_escaped(escaped, text, as_ascii);
    BOOST_TEST(pe::painting::unescaped(escaped) == text);
  }
  for (const std::string text :
       {"", "&", "&;", "&nbsp;", "&#;", "&#0;", "&#99999999999;", "&#x41;", "a&"})
    BOOST_TEST(pe::painting::unescaped(text) == text);
}

BOOST_AUTO_TEST_SUITE_END()
