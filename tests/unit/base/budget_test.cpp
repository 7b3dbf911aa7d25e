// SPDX-License-Identifier: MIT
#include "base/budget.h"

#include <boost/test/unit_test.hpp>

#include "base/clock.h"

using pe::Budget;
using pe::Resource;
using pe::Spender;

BOOST_AUTO_TEST_SUITE(budget)

namespace {

constexpr std::uint64_t kSecond = pe::kNsPerSecond;
constexpr Budget::Limits kLimits = {{{1000, 10}, {1000, 1}, {1000, 0}, {1000, 60}}};

/// Spends one by one as long as it may; returns how much that was.
int spend_all(Budget& budget, std::uint32_t target, Resource resource,
              std::uint64_t now_ns = kSecond) {
  int spent = 0;
  for (; budget.may_spend(target, resource, 1, now_ns); ++spent)
    budget.spend(target, resource, 1, now_ns);
  return spent;
}

std::uint32_t owner_of(std::uint32_t target) { return target / 1000; }

}  // namespace

BOOST_AUTO_TEST_CASE(one_alone_may_spend_most_of_the_whole) {
  Budget budget(kLimits);
  const int spent = spend_all(budget, 1, Resource::kKeptBytes);
  BOOST_TEST(spent > 600);
  BOOST_TEST(spent < 800);
}

BOOST_AUTO_TEST_CASE(however_many_there_are_they_never_spend_more_than_the_whole) {
  Budget budget(kLimits);
  int sum = 0;
  for (std::uint32_t target = 0; target < 5000; ++target)
    sum += spend_all(budget, target, Resource::kKeptBytes);
  BOOST_TEST(sum < 800);
}

BOOST_AUTO_TEST_CASE(another_owner_keeps_a_part_whatever_the_first_one_spends) {
  Budget budget(kLimits, owner_of);
  for (std::uint32_t target = 0; target < 1000; ++target)
    spend_all(budget, target, Resource::kCpuNs);
  BOOST_TEST(spend_all(budget, 1000, Resource::kCpuNs) > 100);
  BOOST_TEST(!budget.may_spend(1, Resource::kCpuNs, 1, kSecond));
}

BOOST_AUTO_TEST_CASE(one_that_has_spent_little_may_spend_where_a_large_spender_may_not) {
  Budget budget(kLimits);
  budget.spend(1, Resource::kKeptBytes, 5, kSecond);
  spend_all(budget, 2, Resource::kKeptBytes);
  BOOST_TEST(!budget.may_spend(2, Resource::kKeptBytes, 1, kSecond));
  BOOST_TEST(budget.may_spend(1, Resource::kKeptBytes, 1, kSecond));
}

BOOST_AUTO_TEST_CASE(kept_bytes_stay_until_they_are_given_back) {
  Budget budget(kLimits);
  const int spent = spend_all(budget, 1, Resource::kKeptBytes);
  BOOST_TEST(!budget.may_spend(1, Resource::kKeptBytes, 1, 1'000'000 * kSecond));
  budget.spend(1, Resource::kKeptBytes, -spent, kSecond);
  BOOST_TEST(spend_all(budget, 1, Resource::kKeptBytes) == spent);
}

BOOST_AUTO_TEST_CASE(other_sums_fade_so_that_the_limit_holds_for_each_time) {
  Budget budget(kLimits);
  const int first = spend_all(budget, 1, Resource::kCpuNs);
  int later = 0;  // in the hundred seconds that follow
  for (std::uint64_t ms = 1000; ms < 101'000; ms += 10)
    later += spend_all(budget, 1, Resource::kCpuNs, ms * 1'000'000);
  BOOST_TEST(later > first * 9);
  BOOST_TEST(later < first * 11);
  // No more than the limit is saved.
  BOOST_TEST(spend_all(budget, 1, Resource::kCpuNs, 100'000 * kSecond) <= first);
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_changes_nothing) {
  Budget budget(kLimits);
  spend_all(budget, 1, Resource::kReadBytes, 5 * kSecond);
  BOOST_TEST(!budget.may_spend(1, Resource::kReadBytes, 1, 5 * kSecond - 1));
}

BOOST_AUTO_TEST_CASE(losses_name_the_target_and_the_reason) {
  Budget budget(kLimits);
  const auto lose = [&](std::uint32_t target, int times) {
    for (int i = 0; i < times; ++i)
      budget.count_loss(target, Resource::kWrittenBytes, kSecond);
  };
  lose(1, 1);
  lose(7, 3);
  const auto losses = budget.losses();
  BOOST_TEST_REQUIRE(losses.size() == 2U);
  BOOST_TEST(losses[0].target == 7U);
  BOOST_TEST(losses[0].count == 3U);
  BOOST_TEST((losses[0].why == Resource::kWrittenBytes));
}

BOOST_AUTO_TEST_CASE(a_spender_without_a_budget_has_no_limits) {
  Spender spender;
  const Spender::Scope scope(spender);
  BOOST_TEST(spender.may_start());
  BOOST_TEST(spender.may_read(std::size_t{1} << 40U));
  BOOST_TEST(spender.may_keep(std::size_t{1} << 40U));
  BOOST_TEST(spender.may_go_on(1'000'000));
}

BOOST_AUTO_TEST_CASE(work_in_a_scope_ends_when_its_time_is_spent) {
  Budget budget({{{5e6, 1000}, {1e9, 1}, {1e9, 0}, {1e9, 60}}});  // 5 ms of CPU time
  Spender spender(budget, 1);
  {
    const Spender::Scope scope(spender);
    volatile unsigned turns = 0;
    while (spender.may_go_on())
      turns = turns + 1;
  }
  BOOST_TEST(spender.is_over());
  BOOST_TEST(!spender.may_start());
  BOOST_TEST(Spender(budget, 2).may_start());
  BOOST_TEST_REQUIRE(budget.losses().size() == 1U);
  BOOST_TEST((budget.losses().front().why == Resource::kCpuNs));
}

BOOST_AUTO_TEST_CASE(nested_scopes_count_once) {
  Budget budget({{{1e9, 1000}, {1e9, 1}, {1e9, 0}, {1e9, 60}}});
  Spender spender(budget, 1);
  std::uint64_t sum = 0;
  {
    const Spender::Scope outer(spender);
    const Spender::Scope inner(spender);
    for (unsigned i = 0; i < 1000; ++i)
      sum += i;
  }
  BOOST_TEST(sum > 0U);
  BOOST_TEST(budget.losses().empty());
  BOOST_TEST(spender.may_start());
}

BOOST_AUTO_TEST_CASE(reading_outside_of_a_scope_has_an_estimated_cost) {
  Budget budget({{{5e6, 1000}, {1e12, 1}, {1e9, 0}, {1e9, 60}}});
  Spender spender(budget, 1);
  int reads = 0;
  while (spender.may_read(4096) && reads < 1'000'000)
    ++reads;
  BOOST_TEST(reads > 1000);
  BOOST_TEST(reads < 100'000);
}

BOOST_AUTO_TEST_CASE(kept_bytes_are_given_back_by_their_owner) {
  Budget budget(kLimits);
  {
    pe::KeptBytes kept(Spender(budget, 1));
    BOOST_TEST(kept.may_add(500));
    BOOST_TEST(!kept.may_add(500));
    pe::KeptBytes moved = std::move(kept);
    BOOST_TEST(!moved.may_add(500));
  }
  BOOST_TEST(pe::KeptBytes(Spender(budget, 1)).may_add(500));
}

BOOST_AUTO_TEST_CASE(a_loop_looks_for_the_end_of_the_recording) {
  Budget budget;
  int looks = 0;
  budget.check_by([&] { ++looks; });
  Spender spender(budget, 1);
  spender.may_start();
  BOOST_TEST(looks == 1);
  spender.may_start();  // too soon
  BOOST_TEST(looks == 1);
  budget.look(pe::monotonic_ns() + kSecond);
  BOOST_TEST(looks == 2);
}

BOOST_AUTO_TEST_CASE(deep_stacks_do_not_use_up_what_tables_need) {
  Budget budget;
  budget.spend(7, Resource::kStackBytes, 1e12, 1);
  BOOST_TEST(!budget.may_spend(7, Resource::kStackBytes, 1, 1));
  BOOST_TEST(!budget.lacking(7, 1).has_value());
  BOOST_TEST(budget.may_spend(7, Resource::kReadBytes, 1, 1));
}

BOOST_AUTO_TEST_SUITE_END()
