// SPDX-License-Identifier: MIT
#include "base/address_map.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>

using pe::AddressMap;

BOOST_AUTO_TEST_SUITE(address_map)

BOOST_AUTO_TEST_CASE(holds_what_a_map_of_the_standard_library_holds) {
  AddressMap<int> map;
  std::map<std::uint64_t, int> expected;
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same in every run
  // Few different addresses, so that they are found, replaced and removed again; 0 and -1 are also
  // addresses.
  const auto address = [&random] { return (random() % 3000 - 1) << (random() % 2 * 40); };
  for (int step = 1; step < 20'000; ++step) {
    const std::uint64_t at = address();
    BOOST_REQUIRE_EQUAL(map[at], expected[at]);
    map[at] = expected[at] = step;
    if (step % 1000 != 0)
      continue;
    const std::uint64_t begin = address();
    map.erase_if([begin](std::uint64_t key, int value) { return key >= begin && value % 2 == 0; });
    std::erase_if(expected, [begin](const auto& item) {
      return item.first >= begin && item.second % 2 == 0;
    });
  }
  for (const auto& [at, value] : expected)
    BOOST_TEST(map[at] == value);
}

BOOST_AUTO_TEST_SUITE_END()
