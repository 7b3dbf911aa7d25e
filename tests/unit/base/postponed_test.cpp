// SPDX-License-Identifier: MIT
#include "base/budget.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "base/clock.h"

using namespace pe;

BOOST_AUTO_TEST_SUITE(postponed)

BOOST_AUTO_TEST_CASE(items_wait_until_their_target_may_spend) {
  constexpr double kMost = 1U << 20;
  Budget budget({{{kMost, 0}, {kMost, 0}, {kMost, 0}, {kMost, 0}, {kMost, 0}}},
                [](std::uint32_t target) { return target; });
  // More than one process may have, but not all.
  budget.spend(1, Resource::kKeptBytes, 0.7 * kMost, monotonic_ns());
  Postponed<std::string> postponed;
  postponed.add(1, "of one that has spent more than its share");
  postponed.add(2, "first");
  postponed.add(2, "second");
  postponed.add(3, "forgotten");
  postponed.forget(3);
  std::vector<std::string> again;
  postponed.retry(budget, [&](std::uint32_t target, const std::string& item) {
    again.push_back(std::to_string(target) + " " + item);
  });
  BOOST_TEST(again == std::vector<std::string>{"2 second"}, boost::test_tools::per_element());
  BOOST_TEST(postponed.contains(1));
  BOOST_TEST(!postponed.contains(2));
}

BOOST_AUTO_TEST_CASE(an_item_may_be_added_while_it_is_retried) {
  Budget budget;
  Postponed<int> postponed;
  postponed.add(1, 1);
  postponed.retry(budget, [&](std::uint32_t target, int item) { postponed.add(target, item + 1); });
  BOOST_TEST(postponed.contains(1));
}

BOOST_AUTO_TEST_SUITE_END()
