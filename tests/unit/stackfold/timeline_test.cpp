// SPDX-License-Identifier: MIT
#include "stackfold/timeline.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "folded/facts.h"
#include "support/costly.h"

using pe::folded::Count;
using pe::folded::StackId;
using pe::folded::Timeline;

namespace {

constexpr std::uint64_t kMs = 1'000'000, kSecond = 1'000'000'000;
const std::vector<std::uint32_t> kRanks{0, 1, 2};

/// Every stack in every step: "LABEL STACK COUNT,".
std::string text_of(Timeline& timeline, const std::vector<std::uint32_t>& ranks = kRanks) {
  std::string text;
  timeline.visit(ranks, [&](std::int32_t step, StackId stack, Count count) {
    text += timeline.label(step) + " " + std::to_string(stack) + " " + to_text(count) + ",";
  });
  return text;
}

Timeline noted(std::uint64_t step_ns, std::uint64_t begin_ns, std::uint64_t end_ns,
               std::uint64_t ns_per_count = 1) {
  Timeline timeline(step_ns, ns_per_count);
  timeline.note(begin_ns, end_ns);
  return timeline;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(timeline)

BOOST_AUTO_TEST_CASE(reads_times_of_root_frames) {
  using pe::folded::parse_time_root;
  BOOST_TEST(parse_time_root("@0").value() == 0U);
  BOOST_TEST(parse_time_root("@012.300").value() == 12'300 * kMs);
  BOOST_TEST(parse_time_root("@1.000001").value() == kSecond + 1000);
  BOOST_TEST(parse_time_root("@9999999999.999999999").value() == 9'999'999'999'999'999'999U);
  for (const char* other :
       {"", "@", "12", "@1.", "@1.2", "@1.23", "@1.2345", "@.100", "@-1", "@+1", "@1e3",
        "@1.0000000000", "@12345678901", "@1 ", " @1", "@1.1x0", "@@1", "@a"})
    BOOST_TEST(!parse_time_root(other), other);
}

BOOST_AUTO_TEST_CASE(prints_times_that_sort_as_text) {
  using pe::folded::time_root;
  BOOST_TEST(time_root(0, 100 * kSecond, kSecond) == "@000");
  BOOST_TEST(time_root(12'300 * kMs, 100 * kSecond, 100 * kMs) == "@012.300");
  BOOST_TEST(time_root(1000, 2000, 500) == "@0.000001000");
}

BOOST_AUTO_TEST_CASE(adds_up_a_stack_in_each_step) {
  Timeline timeline = noted(100 * kMs, 7 * kSecond, 8 * kSecond);
  timeline.add(7 * kSecond + 100 * kMs, 1, {.whole = 1});
  timeline.add(7 * kSecond + 99 * kMs, 1, {.whole = 2});
  timeline.add(7 * kSecond + 199 * kMs, 1, {.whole = 3});
  timeline.add(7 * kSecond + 199 * kMs, 0, {.whole = 4});
  BOOST_TEST(text_of(timeline) == "@0.000 1 2,@0.100 0 4,@0.100 1 4,");
}

BOOST_AUTO_TEST_CASE(a_step_is_in_the_order_of_ranks) {
  Timeline timeline = noted(kSecond, 0, 3 * kSecond);
  timeline.add_span(0, 3 * kSecond, 1);
  for (const StackId stack : {0, 1, 2})
    timeline.add(kSecond, stack, {.whole = 1});
  BOOST_TEST(text_of(timeline, {2, 1, 0}) ==
             "@0 1 1000000000,@1 2 1,@1 1 1000000001,@1 0 1,@2 1 1000000000,");
}

BOOST_AUTO_TEST_CASE(an_earlier_time_moves_the_start_by_whole_steps) {
  Timeline timeline = noted(100 * kMs, kSecond, 2 * kSecond);
  timeline.note(kSecond - 101 * kMs, kSecond);
  timeline.add(kSecond - 101 * kMs, 0, {.whole = 1});
  timeline.add(kSecond - 100 * kMs, 0, {.whole = 2});
  timeline.add(kSecond, 0, {.whole = 3});
  BOOST_TEST(text_of(timeline) == "@0.000 0 1,@0.100 0 2,@0.200 0 3,");
}

BOOST_AUTO_TEST_CASE(a_wait_is_shared_by_the_steps_that_it_covers) {
  Timeline timeline = noted(100 * kMs, 0, kSecond, 1000);
  timeline.add_span(50 * kMs + 1, 350 * kMs + 2, 0);  // covers two whole steps
  timeline.add_span(150 * kMs, 250 * kMs, 0);         // covers none
  timeline.add_span(200 * kMs, 300 * kMs, 1);         // one, exactly
  timeline.add_span(400 * kMs, 400 * kMs, 2);
  BOOST_TEST(text_of(timeline) ==
             "@0.000 0 49999.999,@0.100 0 150000,@0.200 0 150000,@0.200 1 100000,"
             "@0.300 0 50000.002,@0.400 2 0,");
}

BOOST_AUTO_TEST_CASE(no_part_of_a_wait_is_lost) {
  std::mt19937_64 random(1);
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{1000}}) {
    Timeline timeline(step, 1000);
    std::map<StackId, Count> wanted;
    std::map<StackId, Count> got;
    for (int i = 0; i < 500; ++i) {
      const std::uint64_t begin = 1'000'000 + random() % 5000;
      const std::uint64_t end = begin + random() % 5000;
      const auto stack = static_cast<StackId>(random() % kRanks.size());
      timeline.note(begin, end);
      timeline.add_span(begin, end, stack);
      BOOST_TEST(wanted[stack].add(timeline.count_of(end - begin)));
    }
    timeline.visit(kRanks, [&](std::int32_t, StackId stack, Count count) {
      BOOST_TEST(got[stack].add(count));
    });
    BOOST_TEST((got == wanted));
  }
}

BOOST_AUTO_TEST_CASE(parts_are_joined_now_and_then, *pe::tests::costly()) {
  Timeline timeline = noted(kSecond, 0, 3 * kSecond);
  constexpr std::uint64_t kTimes = 1'100'000;  // parts are joined three times, turns twice
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    timeline.add(i % 2 * kSecond, 0, {.whole = 1});
    timeline.add_span(0, 3 * kSecond, 1);
  }
  const std::string each = std::to_string(kTimes * kSecond);
  BOOST_TEST(text_of(timeline) ==
             "@0 0 550000,@0 1 " + each + ",@1 0 550000,@1 1 " + each + ",@2 1 " + each + ",");
}

BOOST_AUTO_TEST_CASE(stacks_get_new_numbers_or_go) {
  Timeline timeline = noted(kSecond, 0, 3 * kSecond);
  for (const StackId stack : {0, 1, 2})
    timeline.add(0, stack, {.whole = stack + 1});
  timeline.add_span(0, 3 * kSecond, 1);
  const std::vector<std::optional<StackId>> numbers{0, std::nullopt, 0};
  timeline.renumber(numbers);
  BOOST_TEST(text_of(timeline) == "@0 0 4,");
}

BOOST_AUTO_TEST_CASE(labels_are_in_the_order_of_time) {
  const auto label = [](std::uint64_t step_ns, std::uint64_t last_ns, std::int32_t step) {
    return noted(step_ns, 5, 5 + last_ns).label(step);
  };
  BOOST_TEST(label(100 * kMs, 9 * kSecond, 3) == "@0.300");
  BOOST_TEST(label(100 * kMs, 10 * kSecond, 3) == "@00.300");
  BOOST_TEST(label(100 * kMs, 12 * kSecond, 123) == "@12.300");
  BOOST_TEST(label(1500 * kMs, 5 * kSecond, 1) == "@1.500");
  BOOST_TEST(label(kSecond, 1000 * kSecond, 7) == "@0007");
  BOOST_TEST(label(60 * kSecond, 1000 * kSecond, 2) == "@120");
  BOOST_TEST(label(250'000, kSecond, 1) == "@0.000250");
  BOOST_TEST(label(1, 100, 42) == "@0.000000042");
}

BOOST_AUTO_TEST_CASE(the_number_of_steps_is_limited) {
  Timeline timeline = noted(1, 10'000'000, 10'000'000);
  timeline.note(10'000'000, 10'000'000 + Timeline::kMostSteps - 1);
  BOOST_CHECK_THROW(timeline.note(9'999'999, 9'999'999), pe::Error);
  BOOST_CHECK_THROW(noted(1, 0, Timeline::kMostSteps), pe::Error);
  BOOST_CHECK_THROW(noted(Timeline::kMostStepNs / 1'000'000, 0, UINT64_MAX), pe::Error);
  constexpr std::uint64_t kEnd = Timeline::kMostSteps * Timeline::kMostStepNs - 1;
  Timeline longest = noted(Timeline::kMostStepNs, 0, kEnd);  // a century
  longest.add_span(0, kEnd, 0);
  std::int32_t steps = 0, last_step = 0;
  Count last;
  longest.visit(kRanks, [&](std::int32_t step, StackId, Count count) {
    ++steps;
    last_step = step;
    last = count;
  });
  BOOST_TEST(steps == Timeline::kMostSteps);
  BOOST_TEST(longest.label(last_step) == "@3599996400");
  BOOST_TEST(to_text(last) == "3599999999999");
}

BOOST_AUTO_TEST_SUITE_END()
