// SPDX-License-Identifier: MIT

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/flamesvg.h"
#include "support/svg_frames.h"

using pe::testing::contains;
using pe::testing::drawn;
using pe::testing::flamesvg;

BOOST_AUTO_TEST_SUITE(flamesvg_times)

namespace {

const std::string kTimed = "@0.900;a;b 3\n@1.000;a;b 4\n@1.000;a;c 5\n";
constexpr const char* kHasTimes = "<metadata class=\"times\">";

}  // namespace

BOOST_AUTO_TEST_CASE(times_are_no_frames) {
  const auto timed = flamesvg({}, kTimed);
  const auto plain = flamesvg({}, "a;b 7\na;c 5\n");
  BOOST_TEST(timed.status == 0);
  BOOST_TEST(drawn(timed.out) == drawn(plain.out));
  BOOST_TEST(contains(timed.out, kHasTimes));
  BOOST_TEST(!contains(plain.out, kHasTimes));
}

BOOST_AUTO_TEST_CASE(times_are_removed_before_stacks_are_changed) {
  for (const char* option : {"--reverse", "--fold-recursion", "--sort=width"})
    BOOST_TEST(
        drawn(flamesvg({option}, kTimed).out) == drawn(flamesvg({option}, "a;b 7\na;c 5\n").out),
        option);
}

BOOST_AUTO_TEST_CASE(the_first_stack_decides) {
  const auto untimed = flamesvg({}, "main 1\n" + kTimed);
  BOOST_TEST(contains(untimed.out, "<title>@0.900 (3 samples"));
  BOOST_TEST(!contains(untimed.out, kHasTimes));
  const auto timed = flamesvg({}, kTimed + "main 1\n");
  BOOST_TEST(contains(timed.out, "<title>main (1 samples"));
  BOOST_TEST(contains(timed.out, kHasTimes));
}

BOOST_AUTO_TEST_CASE(other_graphs_keep_times_as_frames) {
  for (const char* option : {"--compat", "--flamechart"}) {
    const auto r = flamesvg({option}, kTimed);
    BOOST_TEST(contains(r.out, "<title>@1.000 (9 samples"), option);
    BOOST_TEST(!contains(r.out, kHasTimes), option);
  }
  const auto difference = flamesvg({}, "@0.900;a 3 4\n");
  BOOST_TEST(contains(difference.out, "<title>@0.900 (4 samples"));
}

BOOST_AUTO_TEST_CASE(a_stack_of_only_a_time_counts_for_the_root) {
  const auto r = flamesvg({}, "@1 5\n@2;a 7\n");
  BOOST_TEST(contains(r.out, "all (12 samples, 100%)"));
  BOOST_TEST(contains(r.out, "<title>a (7 samples"));
}

BOOST_AUTO_TEST_CASE(without_tree_there_are_no_times) {
  BOOST_TEST(!contains(flamesvg({"--embed=0"}, kTimed).out, kHasTimes));
}

BOOST_AUTO_TEST_SUITE_END()
