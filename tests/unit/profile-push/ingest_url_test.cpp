// SPDX-License-Identifier: MIT
#include "profile-push/ingest_url.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "base/error.h"

namespace {

using pe::push::ingest_url;

std::string why_no_url(const std::string& address, bool allows_http = false) {
  try {
    return "taken as " + ingest_url(address, allows_http);
  } catch (const pe::UsageError& e) {
    return e.what();
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ingest_urls)

BOOST_AUTO_TEST_CASE(an_address_is_https_and_gets_the_path) {
  BOOST_TEST(ingest_url("example.com", false) == "https://example.com/ingest");
  BOOST_TEST(ingest_url("example.com:4040/", false) == "https://example.com:4040/ingest");
  BOOST_TEST(ingest_url("https://example.com/a/b//", false) == "https://example.com/a/b/ingest");
  BOOST_TEST(ingest_url("https://example.com/ingest", false) == "https://example.com/ingest");
  BOOST_TEST(ingest_url("https://example.com/a/ingest/", false) == "https://example.com/a/ingest");
  BOOST_TEST(ingest_url("https://@example.com", false) == "https://example.com/ingest");
  BOOST_TEST(ingest_url("https://:@example.com", false) == "https://example.com/ingest");
}

BOOST_AUTO_TEST_CASE(http_is_for_this_machine) {
  for (const char* host : {"localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "127.1",
                           "0x7f000001", "2130706433", "[::1]"})
    BOOST_TEST(why_no_url(std::string("http://") + host).starts_with("taken as http://"), host);
  for (const char* host : {"example.com", "localhost.example.com", "127.0.0.1.example.com",
                           "128.0.0.1", "0.0.0.0", "[::2]", "[::ffff:1.2.3.4]", "127"})
    BOOST_TEST(why_no_url(std::string("http://") + host).starts_with("--url: http shows "), host);
  BOOST_TEST(ingest_url("http://example.com", true) == "http://example.com/ingest");
}

BOOST_AUTO_TEST_CASE(a_password_is_refused_and_not_repeated) {
  for (const char* address : {"https://me:hunter2@example.com", "https://:hunter2@example.com",
                              "https://hunter2@example.com"}) {
    const std::string why = why_no_url(address);
    BOOST_TEST(why.find("--token-file") != std::string::npos, why);
    BOOST_TEST(why.find("hunter2") == std::string::npos, why);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_server_is_refused) {
  for (const char* address : {"", "http://", "https://", "ftp://example.com", "file:///etc/passwd",
                              "example.com?name=x", "example.com#x", "https://exa mple.com",
                              "https://example.com:99999", "https://example.com\r\nX: y"})
    BOOST_TEST(why_no_url(address).starts_with("--url: "), address);
}

BOOST_AUTO_TEST_SUITE_END()
