// SPDX-License-Identifier: MIT

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/stackfold.h"
#include "support/temp_dir.h"

using pe::testing::stackfold;
using pe::testing::TempDir;

BOOST_AUTO_TEST_SUITE(stackfold_merge)

namespace {

/// The outcome of merging these texts, each in a file of its own.
pe::testing::Result merge(const std::vector<std::string>& texts) {
  const TempDir dir;
  std::vector<std::string> args{"--merge-sorted"};
  for (std::size_t i = 0; i < texts.size(); ++i)
    args.push_back(dir.file("part" + std::to_string(i), texts[i]));
  return stackfold(args, "");
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_stacks_of_all_inputs_become_one) {
  const auto r = merge({"a 1\na (x);b 2\na;b 3\n", "", "a;b 4\nb 1.5\n", "a 10\nb 1.5\n"});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out == "a 11\na (x);b 2\na;b 7\nb 3\n");
  BOOST_TEST(r.err == "");
}

BOOST_AUTO_TEST_CASE(the_output_is_that_of_folding_all) {
  std::string all;
  std::vector<std::string> parts;
  for (int part = 0; part < 7; ++part) {
    std::string text;
    for (int i = part; i < 1000; i += 1 + part)
      text += "main;f" + std::to_string(i * 7 % 97) + (i % 3 == 0 ? ";g h" : "") + " " +
              std::to_string(i) + "\n";
    parts.push_back(stackfold({}, text).out);
    all += text;
  }
  const auto r = merge(parts);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out == stackfold({}, all).out);
}

BOOST_AUTO_TEST_CASE(a_stack_may_come_twice_in_a_row) {
  BOOST_TEST(merge({"a 1\na 2\n"}).out == "a 3\n");
}

BOOST_AUTO_TEST_CASE(lines_out_of_order_are_said_and_written) {
  const auto r = merge({"b 1\na 2\nc 3\n", "b 4\n"});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(stackfold({}, r.out).out == "a 2\nb 5\nc 3\n");
  BOOST_TEST((r.err.find("1 line out of order") != std::string::npos));
  BOOST_TEST((r.err.find("part0:2: fold each input first") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(what_is_no_folded_line_is_counted) {
  const auto r = merge({"a 1\nnothing\nb 2\n"});
  BOOST_TEST(r.out == "a 1\nb 2\n");
  BOOST_TEST((r.err.find("ignored 1 line") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(sums_that_do_not_fit_stay_at_the_largest) {
  const auto r = merge({"a 18446744073709551615\n", "a 1\n"});
  BOOST_TEST((r.out.find("a 18446744073709551615") == 0));
  BOOST_TEST((r.err.find("stay at the largest number") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(no_other_option_goes_with_it) {
  BOOST_TEST(stackfold({"--merge-sorted", "--annotate"}, "").status == 2);
  BOOST_TEST(stackfold({"--merge-sorted", "--to", "pprof"}, "").status == 2);
}

BOOST_AUTO_TEST_SUITE_END()
