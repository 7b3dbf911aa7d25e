// SPDX-License-Identifier: MIT
#include "stackfold/elapsed.h"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <string>

using pe::fold::ElapsedTime;
using pe::folded::FoldedCounts;
using pe::folded::FrameTable;

BOOST_AUTO_TEST_SUITE(elapsed)

namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// Stacks of one frame, by its text.
struct Recording {
  FrameTable frames;
  ElapsedTime time{frames};

  Recording& ran(std::string_view name, std::uint64_t ns, std::uint64_t running) {
    const pe::folded::FrameId stack[] = {frames.intern(name)};
    time.add_running(stack, {.ns = ns}, running);
    return *this;
  }
  Recording& waited(std::string_view name, std::uint64_t ns) {
    const pe::folded::FrameId stack[] = {frames.intern(name)};
    time.add_silence(stack, {.ns = ns});
    return *this;
  }
  std::map<std::string, std::uint64_t> us(std::uint64_t whole_ns) {
    time.set_whole({.ns = whole_ns});
    FoldedCounts counts(frames);
    time.add_to(counts);
    std::map<std::string, std::uint64_t> all;
    counts.for_each([&](auto stack, pe::folded::Count count) {
      all[std::string(frames[stack.front()])] = count.whole;
    });
    return all;
  }
};

using Times = std::map<std::string, std::uint64_t>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_sample_of_one_of_several_threads_is_a_part_of_the_time) {
  Recording recording;
  recording.ran("alone", 10 * kMs, 1).ran("a", 10 * kMs, 2).ran("b", 10 * kMs, 2);
  BOOST_TEST((recording.us(20 * kMs) == Times{{"a", 5'000}, {"alone", 10'000}, {"b", 5'000}}));
}

BOOST_AUTO_TEST_CASE(the_time_in_which_nothing_ran_is_exact_and_samples_share_the_rest) {
  Recording recording;
  recording.ran("x", 1 * kMs, 1).ran("y", 3 * kMs, 0).waited("nap", 30 * kMs);
  BOOST_TEST((recording.us(50 * kMs) == Times{{"nap", 30'000}, {"x", 5'000}, {"y", 15'000}}));
}

BOOST_AUTO_TEST_CASE(the_counts_add_up_to_the_whole_time) {
  Recording recording;
  for (int i = 0; i < 7; ++i)
    recording.ran("f" + std::to_string(i), kMs + static_cast<std::uint64_t>(i), 3);
  std::uint64_t sum = 0;
  for (const auto& [name, us] : recording.waited("nap", 12'345).us(1'000'499))
    sum += us;
  BOOST_TEST(sum == 1'000U);
}

BOOST_AUTO_TEST_CASE(time_without_a_sample_is_named) {
  Recording recording;
  recording.waited("nap", 2 * kMs);
  BOOST_TEST(
      (recording.us(3 * kMs) == Times{{"[ran, but was not sampled]", 1'000}, {"nap", 2'000}}));
}

BOOST_AUTO_TEST_CASE(more_silence_than_time_is_reduced) {
  Recording recording;
  recording.waited("nap", 30 * kMs).waited("read", 10 * kMs).ran("x", kMs, 1);
  BOOST_TEST((recording.us(20 * kMs) == Times{{"nap", 15'000}, {"read", 5'000}}));
}

BOOST_AUTO_TEST_CASE(days_of_cpu_time_fit) {
  constexpr std::uint64_t kDay = 86'400'000'000'000;
  Recording recording;
  for (int day = 0; day < 100; ++day)
    recording.ran("a", kDay, 1);
  recording.ran("b", 100 * kDay, 1);
  BOOST_TEST((recording.us(2 * kMs) == Times{{"a", 1'000}, {"b", 1'000}}));
}

BOOST_AUTO_TEST_CASE(damaged_numbers_add_up_to_the_whole) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Recording recording;
  recording.ran("a", kMost, kMost).ran("a", kMost, 1).ran("b", kMost, 0).waited("c", kMost);
  std::uint64_t sum = 0;
  for (const auto& [name, us] : recording.us(3 * kMs))
    sum += us;
  BOOST_TEST(sum == 3'000U);
  BOOST_TEST(!recording.us(kMost).empty());
}

BOOST_AUTO_TEST_SUITE_END()
