// SPDX-License-Identifier: MIT
#include "profile-push/token.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "support/temp_dir.h"

namespace {

using pe::push::read_token;

std::string file_with(const pe::testing::TempDir& dir, std::string_view content,
                      mode_t mode = S_IRUSR) {
  const std::string path = dir.file("token", content);
  BOOST_REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

std::string why_no_token(const std::string& path) {
  try {
    return "taken: " + read_token(path).secret;
  } catch (const pe::Error& e) {
    return e.what();
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE(is_the_first_line) {
  for (const char* content :
       {"se-cret~1==", "se-cret~1==\n", "se-cret~1==\r\n", "se-cret~1==\nx"}) {
    const pe::testing::TempDir dir;
    const auto token = read_token(file_with(dir, content));
    BOOST_TEST(token.secret == "se-cret~1==");
    BOOST_TEST(token.user.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_colon_parts_user_and_password) {
  const pe::testing::TempDir dir;
  const auto token = read_token(file_with(dir, "12345:a:b\n"));
  BOOST_TEST(token.user == "12345");
  BOOST_TEST(token.secret == "a:b");
}

BOOST_AUTO_TEST_CASE(others_must_not_read_or_change_it) {
  for (const mode_t mode : {0604U, 0602U, 0644U, 0777U}) {
    const pe::testing::TempDir dir;
    const std::string why = why_no_token(file_with(dir, "secret", mode));
    BOOST_TEST(why.find("chmod o=") != std::string::npos, why);
    BOOST_TEST(why.find("secret") == std::string::npos, why);
  }
  const pe::testing::TempDir dir;
  BOOST_TEST(read_token(file_with(dir, "secret", 0640)).secret == "secret");
}

BOOST_AUTO_TEST_CASE(what_no_header_can_hold_is_none) {
  for (const std::string_view content :
       {std::string_view(), std::string_view("\nsecret"), std::string_view("sec ret"),
        std::string_view("sec\tret"), std::string_view("sec\0ret", 7),
        std::string_view("secr\xc3\xa9t"), std::string_view("secret\rX: y")}) {
    const pe::testing::TempDir dir;
    const std::string why = why_no_token(file_with(dir, content));
    BOOST_TEST(why.find("holds no token") != std::string::npos, why);
  }
  const pe::testing::TempDir dir;
  BOOST_TEST(why_no_token(file_with(dir, std::string(10'000, 'x'))).find("holds no token") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_password_without_a_user_is_none) {
  const pe::testing::TempDir dir;
  BOOST_TEST(why_no_token(file_with(dir, ":secret")).find("no user") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_answer_that_repeats_the_token_is_known) {
  using pe::push::repeats;
  const pe::push::Token bearer{.user = "", .secret = "a-long-secret"};
  BOOST_TEST(repeats("invalid: Bearer a-long-secret", bearer));
  BOOST_TEST(repeats("cut: a-long-sec", bearer));
  BOOST_TEST(!repeats("invalid token", bearer));
  const pe::push::Token basic{.user = "me", .secret = "pass"};
  BOOST_TEST(repeats("Authorization: Basic bWU6cGFzcw==", basic));
  BOOST_TEST(!repeats("Basic and Bearer are known", {}));
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_none) {
  const pe::testing::TempDir dir;
  BOOST_TEST(why_no_token(dir / "none") == (dir / "none") + ": No such file or directory");
  BOOST_TEST(why_no_token(dir / "") == (dir / "") + ": not a regular file");
}

BOOST_AUTO_TEST_SUITE_END()
