// SPDX-License-Identifier: MIT
#include "recording/waits/earlier_waits.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

using namespace pe;

BOOST_AUTO_TEST_SUITE(earlier_waits)

namespace {

/// A complete stack of that many frames.
waits::Stack stack_of(std::size_t frames) {
  return {.misc = stream::kMiscComplete, .chain = std::vector<std::uint64_t>(frames, 1)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(deep_stacks_are_cut_when_their_process_has_used_up_its_room) {
  constexpr std::size_t kFrames = 1000;
  Budget::Limits limits = Budget::kUsual;
  limits[static_cast<std::size_t>(Resource::kKeptBytes)].most = 100'000;
  Budget budget(limits);
  std::size_t whole = 0, cut = 0;
  for (int i = 0; i < 100; ++i) {
    waits::Stack stack = stack_of(kFrames);
    waits::keep_within_budget(42, budget, stack);
    const bool is_complete = (stack.misc & stream::kMiscComplete) != 0;
    BOOST_TEST(is_complete == (stack.chain.size() == kFrames));
    ++(is_complete ? whole : cut);
  }
  BOOST_TEST(whole > 0U);
  BOOST_TEST(whole * kFrames * sizeof(std::uint64_t) <= 100'000U);
  BOOST_TEST_REQUIRE(budget.losses().size() == 1U);
  BOOST_TEST(budget.losses().front().count == cut);
}

BOOST_AUTO_TEST_CASE(usual_stacks_need_no_room) {
  Budget::Limits limits = Budget::kUsual;
  limits[static_cast<std::size_t>(Resource::kKeptBytes)].most = 0;
  Budget budget(limits);
  waits::Stack stack = stack_of(100);
  waits::keep_within_budget(42, budget, stack);
  BOOST_TEST(stack.chain.size() == 100U);
  BOOST_TEST((stack.misc & stream::kMiscComplete) != 0);
}

BOOST_AUTO_TEST_SUITE_END()
