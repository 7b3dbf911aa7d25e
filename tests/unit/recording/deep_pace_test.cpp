// SPDX-License-Identifier: MIT
#include "recording/stream/drain.h"

#include <array>
#include <boost/test/unit_test.hpp>

using pe::recording::DeepPace;
using pe::stream::Sample;

BOOST_AUTO_TEST_SUITE(deep_pace)

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::array<std::byte, 1024> kStack{};
constexpr std::array<std::byte, 8> kRegister{};

perf_event_attr attr_of_1000_hz() {
  perf_event_attr attr{};
  attr.freq = 1;
  attr.sample_freq = 1000;
  return attr;
}

Sample sample_at(std::uint64_t time_ns, std::size_t stack_bytes) {
  Sample sample;
  sample.time_ns = time_ns;
  sample.user_regs = pe::stream::U64View(kRegister);
  sample.user_stack = pe::Bytes(kStack).first(stack_bytes);
  sample.user_stack_limit = kStack.size();
  return sample;
}

}  // namespace

BOOST_AUTO_TEST_CASE(shallow_stacks_are_in_no_hurry) {
  DeepPace pace(attr_of_1000_hz());
  BOOST_TEST(!pace.wait_ns(kMillisecond).has_value());
  pace.see(sample_at(kMillisecond, 512), 512);
  BOOST_TEST(!pace.wait_ns(kMillisecond).has_value());
}

// The copy is full, of what lies behind the stack.
BOOST_AUTO_TEST_CASE(shallow_stacks_in_full_copies_are_in_no_hurry) {
  DeepPace pace(attr_of_1000_hz());
  pace.see(sample_at(kMillisecond, kStack.size()), 512);
  BOOST_TEST(!pace.wait_ns(kMillisecond).has_value());
}

BOOST_AUTO_TEST_CASE(after_a_deep_stack_the_next_sample_is_awaited) {
  DeepPace pace(attr_of_1000_hz());
  pace.see(sample_at(10 * kMillisecond, 1000), 1000);
  const auto wait_ns = pace.wait_ns(10 * kMillisecond + 300'000);
  BOOST_TEST_REQUIRE(wait_ns.has_value());
  BOOST_TEST(*wait_ns > 700'000u);
  BOOST_TEST(*wait_ns < 900'000u);
}

BOOST_AUTO_TEST_CASE(the_longer_a_sample_is_overdue_the_longer_is_the_wait) {
  DeepPace pace(attr_of_1000_hz());
  pace.see(sample_at(10 * kMillisecond, 1000), 1000);
  BOOST_TEST(pace.wait_ns(12 * kMillisecond).value() < kMillisecond);
  BOOST_TEST(pace.wait_ns(50 * kMillisecond).value() == 10 * kMillisecond);
  BOOST_TEST(pace.wait_ns(100'000 * kMillisecond).value() < 1000 * kMillisecond);
}

BOOST_AUTO_TEST_CASE(the_hurry_ends_after_some_shallow_stacks) {
  DeepPace pace(attr_of_1000_hz());
  pace.see(sample_at(10 * kMillisecond, 1000), 1000);
  pace.see(sample_at(11 * kMillisecond, 100), 100);
  BOOST_TEST(pace.wait_ns(11 * kMillisecond).has_value());
  pace.see(sample_at(14 * kMillisecond, 100), 100);
  BOOST_TEST(!pace.wait_ns(14 * kMillisecond).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
