// SPDX-License-Identifier: MIT
#include "painting/svg/escape.h"

#include <boost/test/unit_test.hpp>

namespace {

std::string base64(std::string_view bytes) {
  std::string text = ">";
  pe::painting::append_base64(text, bytes);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(base64_text)

BOOST_AUTO_TEST_CASE(three_bytes_are_four_letters_and_the_rest_is_padded) {  // RFC 4648, section 10
  BOOST_TEST(base64("") == ">");
  BOOST_TEST(base64("f") == ">Zg==");
  BOOST_TEST(base64("fo") == ">Zm8=");
  BOOST_TEST(base64("foo") == ">Zm9v");
  BOOST_TEST(base64("foobar") == ">Zm9vYmFy");
  BOOST_TEST(base64("\xff\xfe\xfb\x3e") == ">//77Pg==");
}

BOOST_AUTO_TEST_CASE(bytes_come_back) {
  std::string bytes;
  for (int length = 0; length < 300; ++length) {
    std::string back = ">";
    BOOST_TEST(pe::painting::append_from_base64(back, base64(bytes).substr(1)));
    BOOST_TEST(back == ">" + bytes);
    bytes += static_cast<char>(length * 7);
  }
}

BOOST_AUTO_TEST_CASE(other_text_is_refused) {
  for (const char* const text : {"Zg", "Zg=", "Z===", "Zg=a", "Zm 8", "Zm-8", "Zm8=\n"}) {
    std::string back;
    BOOST_TEST(!pe::painting::append_from_base64(back, text), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
