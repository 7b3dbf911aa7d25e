// SPDX-License-Identifier: MIT
#include "recording/waits/ordered_waits.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using pe::unwind::NumberedSum;
using pe::unwind::SumKey;
using pe::waits::SumIncreases;
using KeyedSum = SumIncreases::KeyedSum;

BOOST_AUTO_TEST_SUITE(sum_increases)

namespace {

SumKey key_of(std::uint32_t tid) {
  return {.tgid = 1,
          .tid = tid,
          .user_stack = 2,
          .kernel_stack = 3,
          .waker = 0,
          .state = 1,
          .kind = 0,
          .program = 4,
          .lock = 0};
}

/// Gives a sum the place of its thread, in the half that has these numbers.
std::vector<NumberedSum> numbered(const std::vector<KeyedSum>& sums, std::uint32_t first = 0) {
  std::vector<NumberedSum> all;
  for (const KeyedSum& keyed : sums)
    all.push_back({first + keyed.key.tid, keyed.key.tid, keyed});
  return all;
}

/// One word for each sum that has grown: "tid:ns/count@last".
std::string take(SumIncreases& increases, const std::vector<KeyedSum>& sums,
                 std::uint32_t first = 0) {
  std::string text;
  for (const auto& [key, sum] : increases.take(numbered(sums, first), [] {}))
    text += (text.empty() ? "" : " ") + std::to_string(key.tid) + ":" + std::to_string(sum.ns) +
            "/" + std::to_string(sum.count) + "@" + std::to_string(sum.last_ns);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_new_sum_has_grown_by_all_of_it) {
  SumIncreases increases;
  BOOST_TEST(take(increases, {{key_of(7), {100, 3, 50, 0, 0, 0}}}) == "7:100/3@50");
}

BOOST_AUTO_TEST_CASE(a_sum_that_was_read_before_has_grown_by_the_rest) {
  SumIncreases increases;
  take(increases, {{key_of(7), {100, 3, 50, 0, 0, 0}}});
  BOOST_TEST(take(increases, {{key_of(7), {130, 5, 60, 0, 0, 0}}}) == "7:30/2@60");
  BOOST_TEST(take(increases, {{key_of(7), {131, 6, 70, 0, 0, 0}}}) == "7:1/1@70");
}

BOOST_AUTO_TEST_CASE(a_sum_that_has_not_grown_is_left_out) {
  SumIncreases increases;
  const std::vector<KeyedSum> sums{{key_of(7), {100, 3, 50, 0, 0, 0}}};
  take(increases, sums);
  BOOST_TEST(take(increases, sums) == "");
  BOOST_TEST(take(increases, {}) == "");
  BOOST_TEST(take(increases, {{key_of(7), {140, 4, 90, 0, 0, 0}}}) == "7:40/1@90");
}

BOOST_AUTO_TEST_CASE(sums_come_in_the_order_of_their_last_waits_then_of_threads) {
  SumIncreases increases;
  BOOST_TEST(take(increases, {{key_of(9), {1, 1, 50, 0, 0, 0}},
                              {key_of(5), {2, 1, 60, 0, 0, 0}},
                              {key_of(8), {3, 1, 50, 0, 0, 0}},
                              {key_of(7), {4, 1, 40, 0, 0, 0}}}) ==
             "7:4/1@40 8:3/1@50 9:1/1@50 5:2/1@60");
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_sum_grow_with_it) {
  SumIncreases increases;
  (void)increases.take(numbered({{key_of(7), {100, 3, 50, 10, 20, 5}}}), [] {});
  const auto grown = increases.take(numbered({{key_of(7), {130, 4, 60, 15, 22, 6}}}), [] {});
  BOOST_TEST_REQUIRE(grown.size() == 1U);
  BOOST_TEST(grown[0].sum.ready_ns == 5U);
  BOOST_TEST(grown[0].sum.silent_ns == 2U);
  BOOST_TEST(grown[0].sum.silent_ready_ns == 1U);
  // A thread that had not run before has only a silence.
  BOOST_TEST(increases.take(numbered({{key_of(7), {130, 5, 70, 15, 30, 14}}}), [] {}).size() == 1U);
}

// The place then has another number, and its sum starts at zero.
BOOST_AUTO_TEST_CASE(a_sum_in_the_place_of_an_older_one_has_grown_by_all_of_it) {
  SumIncreases increases;
  take(increases, {{key_of(7), {100, 3, 50, 0, 0, 0}}});
  BOOST_TEST(take(increases, {{key_of(7), {130, 5, 60, 0, 0, 0}}}, 1024) == "7:130/5@60");
  BOOST_TEST(take(increases, {{key_of(7), {131, 6, 70, 0, 0, 0}}}, 1024) == "7:1/1@70");
}

// The kernel adds to a sum's time first, then to its count.
BOOST_AUTO_TEST_CASE(a_count_that_was_read_too_early_comes_with_the_next_time) {
  SumIncreases increases;
  take(increases, {{key_of(7), {100, 3, 50, 0, 0, 0}}});
  BOOST_TEST(take(increases, {{key_of(7), {120, 3, 50, 0, 0, 0}}}) == "7:20/0@50");
  BOOST_TEST(take(increases, {{key_of(7), {120, 4, 60, 0, 0, 0}}}) == "");
  BOOST_TEST(take(increases, {{key_of(7), {130, 5, 70, 0, 0, 0}}}) == "7:10/2@70");
}

BOOST_AUTO_TEST_SUITE_END()
