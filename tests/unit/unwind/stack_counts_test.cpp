// SPDX-License-Identifier: MIT
#include "unwind/stacks/stack_counts.h"

#include <boost/test/unit_test.hpp>

using pe::unwind::StackCounts;
using pe::unwind::Stop;

BOOST_AUTO_TEST_SUITE(stack_counts)

BOOST_AUTO_TEST_CASE(nothing_walked_is_nothing_said) {
  BOOST_TEST(describe(StackCounts{}).empty());
}

BOOST_AUTO_TEST_CASE(a_share_is_rounded_down_so_that_a_hundred_means_all) {
  StackCounts counts;
  counts.stacks = 10'000;
  counts.complete = 9'999;
  counts.cut = 1;
  counts.cut_bytes = 65'528;
  BOOST_TEST(describe(counts) == "99.9 % of stacks complete; 1 cut at 64 KiB");
}

BOOST_AUTO_TEST_CASE(the_three_commonest_ends_are_told_and_the_others_counted) {
  StackCounts counts;
  counts.stacks = 100;
  counts.ended[{"a.so", Stop::kNoUnwindInfo}] = 3;
  counts.ended[{"b.so", Stop::kNoProgress}] = 40;
  counts.ended[{"c.so", Stop::kBadReturnAddress}] = 5;
  counts.ended[{"a.so", Stop::kNoProgress}] = 1;
  counts.ended[{"d.so", Stop::kNoProgress}] = 2;
  BOOST_TEST(describe(counts) ==
             "0.0 % of stacks complete; 40 ended in b.so: no progress; 5 ended in c.so: bad return "
             "address; 3 ended in a.so: no unwind info; 3 ended elsewhere");
}

BOOST_AUTO_TEST_CASE(that_a_file_could_not_be_opened_is_a_reason_of_its_own) {
  StackCounts counts;
  counts.stacks = 9;
  counts.ended[{"a.so", Stop::kNoUnwindInfo}] = 3;
  counts.unopened["b.so"] = 6;
  BOOST_TEST(describe(counts) ==
             "0.0 % of stacks complete; 6 ended in b.so: too many open files (ulimit -n); 3 ended "
             "in a.so: no unwind info");
}

BOOST_AUTO_TEST_CASE(programs_that_cannot_be_walked_are_told) {
  StackCounts counts;
  counts.foreign = 7;
  BOOST_TEST(describe(counts) == "7 of 32-bit programs not walked");
}

BOOST_AUTO_TEST_CASE(the_most_common_end_is_a_module_or_the_cut) {
  StackCounts counts;
  BOOST_TEST(most_common_end(counts) == "");
  counts.ended[{"a.so", Stop::kNoUnwindInfo}] = 3;
  counts.ended[{"b.so", Stop::kNoProgress}] = 2;
  BOOST_TEST(most_common_end(counts) == "ended in a.so: no unwind info");
  counts.cut = 4;
  counts.cut_bytes = 8192;
  BOOST_TEST(most_common_end(counts) == "were cut at 8 KiB");
}

BOOST_AUTO_TEST_SUITE_END()
