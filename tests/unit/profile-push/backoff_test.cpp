// SPDX-License-Identifier: MIT
#include "profile-push/backoff.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>
#include <set>

#include "profile-push/answer.h"

namespace {

using pe::push::answer_text;
using pe::push::Backoff;
using pe::push::judge;
using pe::push::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

BOOST_AUTO_TEST_SUITE(backoff)

BOOST_AUTO_TEST_CASE(doubles_up_to_a_limit) {
  Backoff backoff(7);
  milliseconds step = Backoff::kFirst;
  for (int i = 0; i < 30; ++i) {
    const auto pause = backoff.next(std::nullopt);
    BOOST_TEST(pause.count() >= step.count() / 2);
    BOOST_TEST(pause.count() <= step.count());
    step = std::min(step * 2, Backoff::kMost);
  }
  BOOST_TEST(step.count() == Backoff::kMost.count());
}

BOOST_AUTO_TEST_CASE(begins_again_after_a_success) {
  Backoff backoff(7);
  for (int i = 0; i < 10; ++i)
    (void)backoff.next(std::nullopt);
  backoff.reset();
  BOOST_TEST(backoff.next(std::nullopt).count() <= Backoff::kFirst.count());
}

BOOST_AUTO_TEST_CASE(two_do_not_come_back_together) {
  std::set<milliseconds::rep> pauses;
  for (unsigned seed = 1; seed <= 20; ++seed)
    pauses.insert(Backoff(seed).next(seconds(30)).count());
  BOOST_TEST(pauses.size() > 10U);
}

BOOST_AUTO_TEST_CASE(a_server_s_wish_is_the_least) {
  Backoff backoff(7);
  const auto pause = backoff.next(seconds(90));
  BOOST_TEST(pause.count() >= 90'000);
  BOOST_TEST(pause.count() <= 91'000);
}

BOOST_AUTO_TEST_CASE(a_wish_without_measure_is_bounded) {
  for (const auto asked : {seconds::max(), seconds(1'000'000)})
    BOOST_TEST(Backoff(7).next(asked).count() <= (Backoff::kMostAsked + Backoff::kFirst).count());
  for (const auto asked : {seconds::min(), seconds(-5), seconds(0)})
    BOOST_TEST(Backoff(7).next(asked).count() <= Backoff::kFirst.count());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(answers)

BOOST_AUTO_TEST_CASE(success_is_any_of_2xx) {
  for (const long status : {200L, 202L, 204L, 299L})
    BOOST_CHECK(judge(status) == Verdict::kSent);
}

BOOST_AUTO_TEST_CASE(a_profile_at_fault_is_refused) {
  for (const long status : {400L, 406L, 410L, 413L, 415L, 422L, 499L})
    BOOST_CHECK(judge(status) == Verdict::kRefused);
}

BOOST_AUTO_TEST_CASE(what_may_pass_is_tried_again) {
  for (const long status : {0L, 100L, 301L, 302L, 401L, 403L, 404L, 405L, 407L, 408L, 425L, 429L,
                            500L, 501L, 503L, 599L, 600L, -1L})
    BOOST_CHECK(judge(status) == Verdict::kTryAgain);
}

BOOST_AUTO_TEST_CASE(text_of_a_server_is_short_and_printable) {
  const pe::push::Answer answer{
      .status = 503, .text = "\x1b[31m\n" + std::string(300, 'x'), .retry_after = std::nullopt};
  const std::string text = answer_text(answer);
  BOOST_TEST(text.starts_with("503: '\\x1b[31m\\x0axxx"));
  BOOST_TEST(text.size() < 240U);
  BOOST_TEST(answer_text({.status = 0, .text = "gone\r", .retry_after = std::nullopt}) ==
             "gone\\x0d");
  BOOST_TEST(answer_text({.status = 500, .text = "", .retry_after = std::nullopt}) == "500");
}

BOOST_AUTO_TEST_SUITE_END()
