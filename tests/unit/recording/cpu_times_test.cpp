// SPDX-License-Identifier: MIT
#include "recording/counters/attributes.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using namespace pe::recording;

BOOST_AUTO_TEST_SUITE(cpu_times)

namespace {

constexpr std::uint64_t kMs = 1'000'000;

std::vector<std::string> described(const std::vector<CpuTime>& times,
                                   const std::vector<int>& online) {
  Closing closing;
  describe_cpus(times, online, closing);
  return closing.doubts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(cpus_that_were_sampled_alike_are_not_mentioned) {
  BOOST_TEST(described({{0, 6000 * kMs}, {1, 5950 * kMs}}, {0, 1}).empty());
  BOOST_TEST(described({}, {0, 1}).empty());
}

BOOST_AUTO_TEST_CASE(cpus_that_went_offline_are_counted_also_if_they_have_returned) {
  for (const auto& online : {std::vector<int>{0}, std::vector<int>{0, 1, 2}}) {
    const auto doubts = described({{0, 6000 * kMs}, {1, 2500 * kMs}, {2, 5000 * kMs}}, online);
    BOOST_TEST_REQUIRE(doubts.size() == 1U);
    BOOST_TEST(doubts[0] ==
               "2 CPUs went offline and had no samples from then on, 4.50 s in all: record again "
               "while all CPUs are online");
  }
}

BOOST_AUTO_TEST_CASE(cpus_that_came_later_are_counted) {
  const auto doubts = described({{0, 6000 * kMs}}, {0, 1});
  BOOST_TEST_REQUIRE(doubts.size() == 1U);
  BOOST_TEST(doubts[0] ==
             "1 CPU came online during the recording and had no samples: record again while all "
             "CPUs are online");
}

BOOST_AUTO_TEST_SUITE_END()
