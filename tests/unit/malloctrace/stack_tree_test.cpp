// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_tree.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <vector>

#include "shared_room.h"

using pe::malloctrace::StackTree;
using pe::testing::SharedRoom;
using pe::testing::Zeroed;

BOOST_AUTO_TEST_SUITE(stack_tree)

namespace {

using Stack = std::vector<std::uint32_t>;

std::uint32_t add(StackTree& tree, const Stack& stack) {
  return tree.site_of(static_cast<std::uint32_t>(stack.size()),
                      [&stack](std::uint32_t i) { return stack[i]; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_reader_finds_each_stack_of_many) {
  const SharedRoom room;
  const Zeroed<StackTree> tree;
  BOOST_REQUIRE(tree->start(room.memory()));
  std::mt19937 random(1);
  std::map<Stack, std::uint32_t> sites;
  for (int i = 0; i < 20000; ++i) {
    Stack stack(random() % 12 + 1);
    for (std::uint32_t& code : stack)
      code = random() % 5 + 1;
    const std::uint32_t site = add(*tree, stack);
    const auto [known, is_new] = sites.emplace(stack, site);
    BOOST_REQUIRE(known->second == site);
    BOOST_REQUIRE(!is_new || site == sites.size());
  }
  const auto stacks = room.stacks();
  BOOST_TEST(stacks.size() == sites.size());
  BOOST_TEST(room.memory().header().sites == sites.size());
  for (const auto& [stack, site] : sites)
    BOOST_REQUIRE(stacks.at(site) == stack);
}

BOOST_AUTO_TEST_CASE(a_stack_without_branches_takes_a_word_a_frame) {
  const SharedRoom room;
  const Zeroed<StackTree> tree;
  BOOST_REQUIRE(tree->start(room.memory()));
  BOOST_TEST(add(*tree, {1, 2, 3, 4, 5}) == 1U);
  BOOST_TEST(room.memory().header().words == 1U + 5 + 2);
  BOOST_TEST(add(*tree, {1, 2, 3, 4, 5, 6}) == 2U);
  BOOST_TEST(add(*tree, {1, 2, 3}) == 3U);
  BOOST_TEST((room.stacks().at(2) == Stack{1, 2, 3, 4, 5, 6}));
  BOOST_TEST((room.stacks().at(3) == Stack{1, 2, 3}));
}

BOOST_AUTO_TEST_SUITE_END()
