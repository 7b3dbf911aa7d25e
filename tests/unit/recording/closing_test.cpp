// SPDX-License-Identifier: MIT
#include "recording/session.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(closing)

namespace {

using pe::Closing;
using pe::recording::add_stacks;
using pe::recording::describe_quality;
using pe::unwind::StackCounts;
using pe::unwind::Stop;

std::vector<std::string> doubts_of(const StackCounts& counts) {
  Closing closing;
  add_stacks(closing, counts, {.if_cut = "use larger copies", .if_foreign = "use others"});
  return closing.doubts;
}

StackCounts counts_of(std::uint64_t stacks, std::uint64_t complete) {
  StackCounts counts;
  counts.stacks = stacks;
  counts.complete = complete;
  return counts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_share_of_complete_stacks_is_reported_only_if_there_are_stacks) {
  BOOST_TEST(describe_quality(3, counts_of(1000, 999)) == "3 lost, 99.9 % of stacks complete");
  BOOST_TEST(describe_quality(0, {}) == "0 lost");
}

BOOST_AUTO_TEST_CASE(a_doubt_ends_with_its_fix_and_empty_details_are_left_out) {
  Closing closing;
  closing.doubt("3 threads too many", "lower --freq");
  closing.detail("");
  closing.detail("2 threads seen");
  BOOST_TEST(closing.doubts == std::vector<std::string>{"3 threads too many: lower --freq"},
             boost::test_tools::per_element());
  BOOST_TEST(closing.details == std::vector<std::string>{"2 threads seen"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_few_incomplete_stacks_are_only_a_detail) {
  StackCounts counts = counts_of(1000, 950);
  counts.ended[{"a.so", Stop::kNoUnwindInfo}] = 50;
  Closing closing;
  add_stacks(closing, counts, {});
  BOOST_TEST(closing.doubts.empty());
  BOOST_TEST(closing.details == std::vector<std::string>{"50 ended in a.so: no unwind info"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(many_incomplete_stacks_are_a_doubt_with_the_most_common_reason) {
  StackCounts counts = counts_of(1000, 900);
  counts.ended[{"a.so", Stop::kNoUnwindInfo}] = 70;
  counts.ended[{"b.so", Stop::kNoProgress}] = 30;
  BOOST_TEST(doubts_of(counts) ==
                 std::vector<std::string>{"10.0 % of stacks are incomplete; most ended in a.so: no "
                                          "unwind info: see HOW STACKS END in pe-record(1)"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(cut_stacks_are_a_doubt_with_the_fix_of_the_tool) {
  StackCounts counts = counts_of(1000, 960);
  counts.cut = 40;
  counts.cut_bytes = 8192;
  BOOST_TEST(
      doubts_of(counts) == std::vector<std::string>{"40 stacks cut at 8 KiB: use larger copies"},
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stacks_that_could_not_be_walked_are_doubts) {
  StackCounts counts = counts_of(1000, 990);
  counts.unopened = {{"a.so", 4}, {"b.so", 6}};
  counts.foreign = 1;
  const std::vector<std::string> wanted{
      "10 stacks ended where a file could not be opened: raise ulimit -n",
      "1 stack of 32-bit programs not walked: use others"};
  BOOST_TEST(doubts_of(counts) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
