// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/timers.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>

namespace {

using pe::inprocess::Pace;

Pace started(std::uint64_t period_ns, std::uint64_t interval_ns) {
  Pace pace{};
  pace.start(period_ns, interval_ns, 12345);
  return pace;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampler_pace)

BOOST_AUTO_TEST_CASE(every_period_is_counted_once_whatever_the_timer_missed) {
  Pace pace = started(10'000, 4'000);
  std::uint64_t signals = 0, periods = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const std::uint32_t times = i % 97 == 0 ? 50 : 1 + i % 3;
    signals += times;
    periods += pace.advance(times);
    const std::uint64_t elapsed = signals * 4 / 10;
    BOOST_REQUIRE(periods <= elapsed + 1);
    BOOST_REQUIRE(periods + 1 >= elapsed);
  }
}

BOOST_AUTO_TEST_CASE(a_timer_at_the_rate_of_samples_makes_each_signal_one) {
  Pace pace = started(1'000, 1'000);
  BOOST_TEST(pace.advance(1) == 1U);
  BOOST_TEST(pace.advance(4) == 4U);
}

/// Work in steps of 10, 6 and 4 ms, at ticks of 4 ms: five of them are a round.
BOOST_AUTO_TEST_CASE(steps_of_whole_ticks_are_met_alike) {
  Pace pace = started(10'101'010, 4'000'000);
  std::array<unsigned, 5> met{};
  unsigned all = 0;
  for (unsigned tick = 0; tick < 50'000; ++tick) {
    const std::uint32_t periods = pace.advance(1);
    met[tick % met.size()] += periods;
    all += periods;
  }
  for (const unsigned count : met)
    BOOST_TEST(count * 100 / all >= 18U);
}

BOOST_AUTO_TEST_SUITE_END()
