// SPDX-License-Identifier: MIT
#include "recording/session.h"

#include <limits.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "support/string_output.h"

BOOST_AUTO_TEST_SUITE(closing)

namespace {

using pe::Closing;
using pe::recording::add_stacks;
using pe::recording::summarize;
using pe::recording::Summary;
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

std::string line_of(const Summary& summary) {
  pe::StringOutput out;
  summary.write(out, "pe-record");
  return out.text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_share_of_complete_stacks_is_reported_only_if_there_are_stacks) {
  pe::recording::OwnCost cost;
  cost.begin_wall(1);
  cost.end_wall(100'000'001);  // too short for a share of the CPU
  const StackCounts stacks = counts_of(1000, 999);
  const StackCounts none;
  Closing with, without;
  BOOST_TEST(
      summarize(with,
                {.noun = "sample", .name = "samples", .count = 1001, .lost = 3, .stacks = stacks},
                cost) == "1001 samples in 0.10 s, 3 lost, 99.9 % of stacks complete");
  BOOST_TEST(summarize(without,
                       {.noun = "wait", .name = "waits", .count = 1, .lost = 0, .stacks = none},
                       cost) == "1 wait in 0.10 s, 0 lost");
  BOOST_TEST(line_of({.result = "recorded", .text = "x", .figures = with.figures}) ==
             "{\"tool\":\"pe-record\",\"result\":\"recorded\",\"text\":\"x\",\"samples\":1001,"
             "\"lost\":3,\"complete_percent\":99.9}\n");
  BOOST_TEST(line_of({.result = "recorded", .text = "x", .figures = without.figures}) ==
             "{\"tool\":\"pe-record\",\"result\":\"recorded\",\"text\":\"x\",\"waits\":1,"
             "\"lost\":0}\n");
}

BOOST_AUTO_TEST_CASE(a_summary_is_one_line_that_a_pipe_accepts_at_once) {
  const std::string hostile = "\"\n\x1b\\";
  std::string texts;
  for (int i = 0; i < 10'000; ++i)
    texts += hostile;
  Closing closing;
  closing.fact("event", texts);
  const std::string line =
      line_of({.result = "failed", .text = pe::printable(texts), .figures = closing.figures});
  BOOST_TEST(line.size() <= PIPE_BUF);
  BOOST_TEST(line.find('\n') == line.size() - 1);
  BOOST_TEST(line.find('\x1b') == std::string::npos);
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
