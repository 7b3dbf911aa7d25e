// SPDX-License-Identifier: MIT
#include "stackfold/folded_counts.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <string>

#include "support/string_output.h"

using pe::folded::Count;
using pe::folded::FoldedCounts;
using pe::folded::FrameTable;

namespace {

std::string written(FoldedCounts& counts) {
  pe::StringOutput out;
  counts.write(out);
  return out.text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(folded_counts)

BOOST_AUTO_TEST_CASE(adds_equal_stacks_and_sorts_bytewise) {
  FrameTable frames;
  FoldedCounts counts(frames);
  counts.add("b;c", {.whole = 1});
  counts.add("B", {.whole = 2});
  counts.add("\xc3\xa9", {.whole = 3});
  counts.add("b;c", {.whole = 4, .billionths = 500'000'000});
  BOOST_TEST(written(counts) == "B 2\nb;c 5.5\n\xc3\xa9 3\n");
  BOOST_TEST(!counts.saturated());
}

BOOST_AUTO_TEST_CASE(keeps_its_own_copy_of_a_stack) {
  FrameTable frames;
  FoldedCounts counts(frames);
  std::string stack = "gone";
  counts.add(stack, {.whole = 1});
  stack = "here";
  counts.add(stack, {.whole = 1});
  BOOST_TEST(written(counts) == "gone 1\nhere 1\n");
}

BOOST_AUTO_TEST_CASE(a_sum_that_does_not_fit_stays_at_the_largest) {
  FrameTable frames;
  FoldedCounts counts(frames);
  counts.add("a", Count::max());
  counts.add("a", {.whole = 1});
  BOOST_TEST(counts.saturated());
  BOOST_TEST(written(counts) == "a 18446744073709551615.999999999\n");
}

BOOST_AUTO_TEST_CASE(sorts_as_memcmp_would) {
  // '!' and ':' sort before ';', and '<' after it.  An empty frame counts as a frame.
  FrameTable frames;
  FoldedCounts counts(frames);
  for (const char* stack : {"a<", "a;b", "a", "a!;b", "a;;b", "a:", "a;b;c", "a;", "a<;b", ";a"})
    counts.add(stack, {.whole = 1});
  BOOST_TEST(written(counts) ==
             ";a 1\na 1\na!;b 1\na: 1\na; 1\na;;b 1\na;b 1\na;b;c 1\na< 1\na<;b 1\n");
}

BOOST_AUTO_TEST_CASE(a_stack_of_100000_frames_needs_no_recursion) {
  FrameTable frames;
  FoldedCounts counts(frames);
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i)
    deep += ";a";
  counts.add(deep, {.whole = 1});
  counts.add(std::string_view(deep).substr(0, deep.size() - 2), {.whole = 2});
  counts.add(deep + ";b", {.whole = 3});
  counts.add("a", {.whole = 4});
  BOOST_TEST(
      (written(counts) == "a 4\n" + deep.substr(2) + " 2\n" + deep + " 1\n" + deep + ";b 3\n"));
}

BOOST_AUTO_TEST_CASE(a_frame_may_have_very_many_callees) {
  FrameTable frames;
  FoldedCounts counts(frames);
  std::string expected;
  for (int i = 999'999; i >= 0; i -= 10)
    counts.add("a;" + std::to_string(1'000'000 + i), {.whole = 1});
  for (int i = 9; i < 1'000'000; i += 10)
    expected += "a;" + std::to_string(1'000'000 + i) + " 1\n";
  BOOST_TEST((written(counts) == expected));
}

BOOST_AUTO_TEST_CASE(can_be_written_before_the_last_stack_is_added) {
  FrameTable frames;
  FoldedCounts counts(frames);
  counts.add("a;b", {.whole = 1});
  written(counts);
  counts.add("a;b", {.whole = 1});
  counts.add("a;c", {.whole = 1});
  BOOST_TEST(written(counts) == "a;b 2\na;c 1\n");
}

BOOST_AUTO_TEST_CASE(divides_and_rounds) {
  FrameTable frames;
  FoldedCounts in_ns(frames);
  FoldedCounts in_us(frames);
  in_ns.add("a;b", {.whole = 1499});
  in_ns.add("a;c", {.whole = 1500});
  in_us.add("a;b", {.whole = 7});
  in_us.add_divided(in_ns, 1000);
  BOOST_TEST(written(in_us) == "a;b 8\na;c 2\n");
}

BOOST_AUTO_TEST_CASE(what_would_be_rounded_to_nothing_keeps_its_decimals) {
  FrameTable frames;
  FoldedCounts in_ns(frames);
  FoldedCounts in_us(frames);
  in_ns.add("a", {.whole = 1});
  in_ns.add("b", {.whole = 499});
  in_ns.add("c", {.whole = 500});
  in_us.add_divided(in_ns, 1000);
  BOOST_TEST(written(in_us) == "a 0.001\nb 0.499\nc 1\n");
}

BOOST_AUTO_TEST_CASE(agrees_with_an_ordered_map) {
  std::mt19937 random(1);  // NOLINT: the same stacks every time
  std::map<std::string, std::uint64_t> expected;
  FrameTable frames;
  FoldedCounts counts(frames);
  for (int i = 0; i < 20'000; ++i) {
    const std::string stack = std::string(random() % 300, 'x') + std::to_string(random() % 50);
    expected[stack] += i;
    counts.add(stack, {.whole = static_cast<std::uint64_t>(i)});
  }
  std::string text;
  for (const auto& [stack, count] : expected)
    text += stack + " " + std::to_string(count) + "\n";
  BOOST_TEST((written(counts) == text));
}

BOOST_AUTO_TEST_SUITE_END()
