// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/costly.h"
#include "support/stackfold.h"
#include "support/temp_dir.h"

using pe::testing::stackfold;
using pe::testing::TempDir;

BOOST_AUTO_TEST_SUITE(stackfold_merge)

namespace {

/// Writes each text into a file of its own and merges the files.
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

// The lambdas of one program have other numbers in each run; without them, stacks have another
// order.
BOOST_AUTO_TEST_CASE(stripped_names_are_added_up_and_in_order) {
  const TempDir dir;
  const std::vector<std::string> parts = {
      dir.file("a", "java;L$$Lambda$1.f 2\njava;L$$Lambda$2.f 3\njava;L.cold;x 5\njava;La 1\n"),
      dir.file("b", "java;L$$Lambda$9/0x00007f0a1c0d2000.f 10\njava;L$$Lambdb 4\n")};
  const std::string want = "java;L$$Lambda.f 15\njava;L$$Lambdb 4\njava;L;x 5\njava;La 1\n";
  const auto merged =
      stackfold({"--merge-sorted", "--stats", "--strip-names", parts[0], parts[1]}, "");
  BOOST_TEST(merged.status == 0);
  BOOST_TEST(merged.out == want);
  BOOST_TEST(merged.err ==
             "stackfold: read 6 lines, a count of 25; wrote 4 stacks, a count of 25\n");
  BOOST_TEST(stackfold({"--strip-names", parts[0], parts[1]}, "").out == want);
  BOOST_TEST((stackfold({"--merge-sorted", parts[0], parts[1]}, "").out.find("$$Lambda$2.f 3") !=
              std::string::npos));
  BOOST_TEST(stackfold({"--strip-names", "--compat"}, "a 1\n").status == 2);
  BOOST_TEST(stackfold({"--strip-names", "--to", "pprof"}, "a 1\n").status == 2);
}

BOOST_AUTO_TEST_CASE(stripped_names_of_more_text_than_fits_are_in_order, *pe::tests::costly()) {
  std::string text;  // more lines than one part in memory has; they come in order
  for (int i = 100'000; i < 500'000; ++i)
    text += fmt::format("m;f{}${} 1\n", i % 2 == 0 ? "" : "g", i);
  const TempDir dir;
  const std::string sorted = dir.file("all", stackfold({}, text).out);
  const auto merged = stackfold({"--merge-sorted", "--strip-names", sorted}, "");
  BOOST_TEST(merged.status == 0);
  BOOST_TEST(merged.out == "m;f$ 200000\nm;fg$ 200000\n");
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
  BOOST_TEST((r.err.find("were capped") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(an_input_that_was_cut_is_said_and_a_failure) {
  for (const std::string text : {"a 1\nb 1", "a 1\nmain;foo", "a 1\nb"}) {
    const auto r = merge({"a 1\n", text});
    BOOST_TEST(r.status == 1);
    BOOST_TEST((r.out.find("a 2\n") == 0));
    BOOST_TEST((r.err.find("part1:2: no newline at the end") != std::string::npos));
  }
  BOOST_TEST(merge({"", "\n"}).status == 0);
}

BOOST_AUTO_TEST_CASE(an_input_that_is_no_folded_text_is_a_failure) {
  const auto r = merge({"a 1\n", "nothing\nof it\n"});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out == "a 1\n");
  BOOST_TEST((r.err.find("ignored 2 lines") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(stats_tell_what_was_read_and_written) {
  const TempDir dir;
  const std::string a = dir.file("a", "a 1\na;b 2.5\n");
  const std::string b = dir.file("b", "a 40\nno line\nb 18446744073709551\n");
  const auto r = stackfold({"--merge-sorted", "--stats", a, b}, "");
  BOOST_TEST(r.status == 0);
  BOOST_TEST((r.err.find("\nstackfold: read 4 lines, a count of 18446744073709594.5; "
                         "wrote 3 stacks, a count of 18446744073709594.5\n") != std::string::npos));
  BOOST_TEST(stackfold({"--stats"}, "").status == 2);
}

BOOST_AUTO_TEST_CASE(no_other_option_goes_with_it) {
  BOOST_TEST(stackfold({"--merge-sorted", "--annotate"}, "").status == 2);
  BOOST_TEST(stackfold({"--merge-sorted", "--to", "pprof"}, "").status == 2);
}

BOOST_AUTO_TEST_SUITE_END()
