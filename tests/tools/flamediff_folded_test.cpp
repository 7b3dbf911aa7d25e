// flamediff --folded, and flamediff as difffolded.pl.  The expected lines are those of the perl
// script, sorted, because its own order is random.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/flamediff.h"
#include "support/string_output.h"
#include "support/svg_frames.h"

using pe::testing::contains;
using pe::testing::flamediff;
using pe::testing::Result;
using pe::testing::TempDir;

BOOST_AUTO_TEST_SUITE(flamediff_folded)

namespace {

const std::string kOdd =
    "a 1\na 2\n\nbad\nx\ty 3\nm 2 3\nq 1.5\nq 1\nz 5\r\n 7\ntr;  3\nneg -4\ne;0xabc12 1\n"
    "e;0xDEF+0x3g 4\ne;0x12 7\nz0 0\nhh 1.\nii .5\n";

Result as_script(const std::vector<std::string>& args) {
  const pe::Fd in = pe::testing::memory_file("");
  pe::StringOutput out;
  pe::StringOutput err;
  pe::Io io{in.get(), out, err};
  const int status = pe::run_as(pe::kFlamediff, "/x/difffolded.pl", args, io);
  return {status, out.text, err.text};
}

}  // namespace

BOOST_AUTO_TEST_CASE(prints_each_stack_with_both_counts_in_order) {
  const auto r = flamediff({"--folded"}, "b;x 10\na 5\nc;d 3.5\n", "a 7\nz;q 1\nb;x 4\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err.empty());
  BOOST_TEST(r.out == "a 5 7\nb;x 10 4\nc;d 3.5 0\nz;q 0 1\n");
}

BOOST_AUTO_TEST_CASE(normalized_counts_are_cut_to_whole_numbers) {
  const auto r =
      flamediff({"--folded", "--normalize"}, "b;x 10\na 5\nc;d 3.5\n", "a 7\nz;q 1\nb;x 4\n");
  BOOST_TEST(r.out == "a 3 7\nb;x 6 4\nc;d 2 0\nz;q 0 1\n");
  BOOST_TEST(flamediff({"--folded", "--normalize"}, "a 49\n", "a 1\n").out == "a 1 1\n");
  BOOST_TEST(flamediff({"--folded", "--normalize"}, "", "a 3\n").out == "a 0 3\n");
  BOOST_TEST(flamediff({"--folded", "--normalize"}, "a 3\n", "").out == "a 0 0\n");
}

BOOST_AUTO_TEST_CASE(hexadecimal_numbers_are_stripped_and_their_stacks_added_up) {
  const auto r =
      flamediff({"--folded", "-s"}, "e;0xabc12 1\ne;0xDEF+0x3g 4\ne;0x12 7\n", "e;0x0 1\n");
  BOOST_TEST(r.out == "e;0x... 8 1\ne;0x...+0x...g 4 0\n");
}

BOOST_AUTO_TEST_CASE(the_script_keeps_odd_lines_and_counts_bad_ones_as_a_stack_without_frames) {
  const TempDir dir;
  const std::string before = dir.file("a", kOdd);
  const std::string after = dir.file("b", "a 10\nfrac 2.75\nm 2 4\n");
  const auto r = as_script({before, after});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out ==
             " 7 0\na 3 10\ne;0x12 7 0\ne;0xDEF+0x3g 4 0\ne;0xabc12 1 0\nfrac 0 2.75\nhh 1 0\n"
             "m 2 3 4\nq 2.5 0\ntr;  3 0\nx\ty 3 0\nz0 0 0\n");
  BOOST_TEST(as_script({dir.file("c", "bad\n"), after}).out ==
             " 0 0\na 0 10\nfrac 0 2.75\nm 2 0 4\n");
}

BOOST_AUTO_TEST_CASE(the_script_adds_as_perl_does) {
  const TempDir dir;
  const std::string before =
      dir.file("a", "a 0.1\na 0.2\nb 3.14159265358979\nc 10000000000000000000\nc 9e9\n");
  const std::string after = dir.file("b", "c 10000000000000000000\nc 10000000000000000000\n");
  BOOST_TEST(as_script({before, after}).out ==
             " 0 0\na 0.3 0\nb 3.14159265358979 0\nc 10000000000000000000 2e+19\n");
  const std::string whole = dir.file("c", "a 18446744073709551615\nb 7\n");
  const std::string half = dir.file("d", "a 1\n");
  BOOST_TEST(as_script({"-n", whole, half}).out == "a 1 1\nb 0 0\n");
}

BOOST_AUTO_TEST_CASE(the_script_scales_only_if_the_totals_differ) {
  const TempDir dir;
  const std::string a = dir.file("a", "x 1.5\ny 2\n");
  const std::string b = dir.file("b", "x 2\ny 1.5\n");
  BOOST_TEST(as_script({"-n", a, b}).out == "x 1.5 2\ny 2 1.5\n");
}

BOOST_AUTO_TEST_CASE(without_the_scripts_name_bad_lines_are_left_out_and_others_are_read) {
  const auto r = flamediff({"--folded"}, kOdd, "");
  BOOST_TEST(contains(r.err, "ignored 4 lines"));
  BOOST_TEST(contains(r.out, "z 5 0\n"));
  BOOST_TEST(!contains(r.out, "\n 7"));
}

BOOST_AUTO_TEST_CASE(the_script_takes_letters_before_files) {
  const TempDir dir;
  const std::string a = dir.file("a", "e;0x1 4\n");
  const std::string b = dir.file("b", "e;0x2 2\n");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"-ns", a, b}, {"-s", "-n", a, b}, {"-sn", "--", a, b, "more"}})
    BOOST_TEST(as_script(args).out == "e;0x... 2 2\n");
  BOOST_TEST(as_script({a, b, "-n"}).out == "e;0x1 4 0\ne;0x2 0 2\n");
}

BOOST_AUTO_TEST_CASE(the_scripts_usage_has_its_status) {
  const TempDir dir;
  const std::string a = dir.file("a", "x 1\n");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"-h"}, {}, {a}, {"-x", a, a}, {"-"}}) {
    const auto r = as_script(args);
    BOOST_TEST(r.status == 2);
    BOOST_TEST(r.out.empty());
    BOOST_TEST(contains(r.err, "Usage: difffolded.pl"));
  }
  BOOST_TEST(as_script({a, dir / "absent"}).status == 1);
}

BOOST_AUTO_TEST_CASE(unsorted_and_repeated_stacks_add_up) {
  const auto r = flamediff({"--folded"}, "b 1\na;b 1\na 1\nb 2\na;b 3\n", "a;b 1\na 1\na;b 1\n");
  BOOST_TEST(r.out == "a 1 1\na;b 4 2\nb 3 0\n");
}

BOOST_AUTO_TEST_SUITE_END()
