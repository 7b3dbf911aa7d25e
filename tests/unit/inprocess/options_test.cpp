// SPDX-License-Identifier: MIT
#include "recording/sigprof/options.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <vector>

namespace {

using namespace pe;
using inprocess::check_options;

using Field = std::uint32_t sp_sigprof_options::*;

sp_sigprof_options with(Field field, std::uint32_t value) {
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  options.*field = value;
  return options;
}

bool is_taken(Field field, std::uint32_t value) {
  const sp_sigprof_options options = with(field, value);
  return check_options(&options).has_value();
}

/// As a caller has them whose header is of another version.
std::vector<std::byte> of_size(std::size_t size) {
  std::vector<std::byte> bytes(std::max(size, sizeof(sp_sigprof_options)) + 8);
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

bool is_taken(const std::vector<std::byte>& bytes) {
  return check_options(reinterpret_cast<const sp_sigprof_options*>(bytes.data())).has_value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sigprof_options)

BOOST_AUTO_TEST_CASE(no_options_and_zeros_are_the_defaults) {
  const sp_sigprof_options zeros = SP_SIGPROF_OPTIONS;
  for (const auto* asked : {static_cast<const sp_sigprof_options*>(nullptr), &zeros}) {
    const auto options = check_options(asked);
    BOOST_REQUIRE(options);
    BOOST_TEST(options->hz == 99U);
    BOOST_TEST((options->clock == inprocess::Clock::kCpu));
    BOOST_TEST(!options->only_chosen_threads);
    BOOST_TEST(options->stack_bytes == 32768U);
    BOOST_TEST(options->ring_bytes == 524288U);
    BOOST_TEST(options->stop_ms == 2000U);
  }
}

BOOST_AUTO_TEST_CASE(what_is_asked_for_is_taken) {
  sp_sigprof_options asked = SP_SIGPROF_OPTIONS;
  asked.hz = 250;
  asked.clock = SP_SIGPROF_WALL;
  asked.threads = SP_SIGPROF_THIS_THREAD;
  asked.stack_bytes = 4096;
  asked.ring_bytes = 1 << 17;
  asked.stop_ms = 5;
  const auto options = check_options(&asked);
  BOOST_REQUIRE(options);
  BOOST_TEST(options->hz == 250U);
  BOOST_TEST((options->clock == inprocess::Clock::kWall));
  BOOST_TEST(options->only_chosen_threads);
  BOOST_TEST(options->stack_bytes == 4096U);
  BOOST_TEST(options->ring_bytes == 1U << 17);
  BOOST_TEST(options->stop_ms == 5U);
}

BOOST_AUTO_TEST_CASE(values_out_of_their_range_are_refused) {
  using Options = sp_sigprof_options;
  BOOST_TEST(is_taken(&Options::hz, 1));
  BOOST_TEST(is_taken(&Options::hz, 1000));
  BOOST_TEST(!is_taken(&Options::hz, 1001));
  BOOST_TEST(!is_taken(&Options::clock, 2));
  BOOST_TEST(!is_taken(&Options::threads, 2));
  BOOST_TEST(!is_taken(&Options::stack_bytes, 255));
  BOOST_TEST(is_taken(&Options::stack_bytes, 64512));
  BOOST_TEST(!is_taken(&Options::stack_bytes, 64513));
  BOOST_TEST(!is_taken(&Options::ring_bytes, 65535));
  BOOST_TEST(is_taken(&Options::ring_bytes, 1 << 24));
  BOOST_TEST(!is_taken(&Options::ring_bytes, (1 << 24) + 1));
  BOOST_TEST(!is_taken(&Options::stop_ms, 3'600'001));
}

BOOST_AUTO_TEST_CASE(a_ring_is_a_power_of_two_and_holds_four_stacks) {
  sp_sigprof_options asked = SP_SIGPROF_OPTIONS;
  asked.ring_bytes = 65537;
  asked.stack_bytes = 64512;
  const auto options = check_options(&asked);
  BOOST_REQUIRE(options);
  BOOST_TEST(options->ring_bytes == 131072U);
  BOOST_TEST(options->stack_bytes == 32768U);
}

BOOST_AUTO_TEST_CASE(callers_of_other_versions_are_told_by_their_size) {
  constexpr std::size_t kFirst = 32;
  BOOST_TEST(!is_taken(of_size(0)));
  BOOST_TEST(!is_taken(of_size(kFirst - 1)));
  BOOST_TEST(is_taken(of_size(kFirst)));
  // Fields that we do not know are not asked for, if they are 0.
  std::vector<std::byte> newer = of_size(sizeof(sp_sigprof_options) + 8);
  BOOST_TEST(is_taken(newer));
  newer[sizeof(sp_sigprof_options) + 3] = std::byte{1};
  BOOST_TEST(!is_taken(newer));
  BOOST_TEST(!is_taken(of_size(4097)));
}

BOOST_AUTO_TEST_CASE(counts_fill_what_the_caller_has_room_for) {
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  counts.samples = 5;
  counts.bytes = 7;
  struct {
    sp_sigprof_counts counts;
    std::uint64_t behind;
  } newer{SP_SIGPROF_COUNTS, 9};
  newer.counts.size = sizeof newer;
  inprocess::copy_counts(counts, newer.counts);
  BOOST_TEST(newer.counts.size == sizeof newer);
  BOOST_TEST(newer.counts.samples == 5U);
  BOOST_TEST(newer.counts.bytes == 7U);
  BOOST_TEST(newer.behind == 0U);
  sp_sigprof_counts none = SP_SIGPROF_COUNTS;
  none.size = 0;
  none.samples = 3;
  inprocess::copy_counts(counts, none);
  BOOST_TEST(none.samples == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
