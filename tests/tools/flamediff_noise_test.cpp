// How flamediff recognises counts that are samples; it can compute the noise of samples alone.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/flamediff.h"

using pe::testing::contains;
using pe::testing::flamediff;

BOOST_AUTO_TEST_SUITE(flamediff_noise)

BOOST_AUTO_TEST_CASE(one_small_count_in_twenty_is_a_tail_of_samples) {
  // The stacks of both sides have large counts without a common divisor; with `has_small`, one
  // stack has a count of three.
  const auto text_of = [](int stacks, bool has_small) {
    std::string text = has_small ? "main;small 3\n" : "";
    for (int i = has_small ? 1 : 0; i < stacks; ++i)
      text += fmt::format("main;f{} {}\n", i, 1'000'003 + i * 7919);
    return text;
  };
  BOOST_TEST(contains(flamediff({"--text"}, text_of(10, true), text_of(10, false)).out,
                      "noise: from sampling"));
  BOOST_TEST(
      contains(flamediff({"--text"}, text_of(10, true), text_of(11, false)).out, "noise: unknown"));
}

BOOST_AUTO_TEST_SUITE_END()
