// SPDX-License-Identifier: MIT
#include "base/sort_in_steps.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <utility>

using pe::Budget;
using pe::sort_in_steps;
using pe::Spender;

BOOST_AUTO_TEST_SUITE(sorting_in_steps)

namespace {

using Item = std::pair<std::uint32_t, std::size_t>;

bool is_before(const Item& a, const Item& b) { return a.first < b.first; }

std::vector<Item> shuffled(std::size_t count) {
  std::mt19937 random(7);
  std::vector<Item> all;
  for (std::size_t i = 0; i < count; ++i)
    all.emplace_back(static_cast<std::uint32_t>(random() % (count / 2 + 1)), i);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sorts_stably_whatever_the_number_of_pieces) {
  for (const std::size_t count : {0UL, 1UL, 1000UL, 32'768UL, 32'769UL, 200'000UL}) {
    std::vector<Item> all = shuffled(count), expected = all;
    std::stable_sort(expected.begin(), expected.end(), is_before);
    BOOST_TEST(sort_in_steps(all, is_before, pe::paid_by(nullptr)));
    BOOST_TEST((all == expected));
  }
}

BOOST_AUTO_TEST_CASE(ends_soon_if_nobody_pays) {
  Budget budget({{{1, 0}, {1e9, 1}, {1e9, 0}, {1e9, 60}}});
  budget.spend(1, pe::Resource::kCpuNs, 2, 1);
  Spender spender(budget, 1);
  std::vector<Item> all = shuffled(200'000);
  const std::vector<Item> before = all;
  BOOST_TEST(!sort_in_steps(all, is_before, pe::paid_by(&spender)));
  BOOST_TEST((all == before));
  std::vector<Item> sorted{{1, 0}, {2, 1}};
  BOOST_TEST(sort_in_steps(sorted, is_before, pe::paid_by(&spender)));
}

BOOST_AUTO_TEST_SUITE_END()
