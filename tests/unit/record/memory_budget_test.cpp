// SPDX-License-Identifier: MIT
#include "record/stream/memory_budget.h"

#include <boost/test/unit_test.hpp>

using pe::record::MemoryBudget;

BOOST_AUTO_TEST_SUITE(memory_budget)

namespace {
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kAll = MemoryBudget::kBytesPerSecond;
}  // namespace

BOOST_AUTO_TEST_CASE(a_seconds_budget_may_be_spent_at_once_and_comes_back_with_time) {
  MemoryBudget budget;
  BOOST_TEST(budget.allows(kSecond));
  budget.spend(kAll);
  BOOST_TEST(!budget.allows(kSecond));
  BOOST_TEST(!budget.allows(kSecond - 1));  // clocks of several CPUs
  BOOST_TEST(budget.allows(kSecond + kSecond / 4));
  budget.spend(kAll / 2);
  BOOST_TEST(!budget.allows(kSecond + kSecond / 4));
  BOOST_TEST(budget.allows(100 * kSecond));
  BOOST_TEST(budget.refused() == 3u);
  BOOST_TEST(budget.read_bytes() == kAll + kAll / 2);
}

BOOST_AUTO_TEST_CASE(no_more_than_a_seconds_budget_is_saved) {
  MemoryBudget budget;
  BOOST_TEST(budget.allows(1000 * kSecond));
  budget.spend(kAll);
  BOOST_TEST(!budget.allows(1000 * kSecond));
}

BOOST_AUTO_TEST_SUITE_END()
