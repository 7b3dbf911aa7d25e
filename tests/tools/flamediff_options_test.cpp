// The command line of flamediff, its output file, and input that it refuses.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/flamediff.h"
#include "support/svg_frames.h"

using pe::testing::contains;
using pe::testing::flamediff;
using pe::testing::TempDir;

BOOST_AUTO_TEST_SUITE(flamediff_options)

namespace {

const std::string kBefore = "main;parse 300\nmain;run 500\nmain;old;deep 200\n";
const std::string kAfter = "main;parse 300\nmain;run 1400\nmain;fresh 300\n";

}  // namespace

BOOST_AUTO_TEST_CASE(wrong_command_lines_are_refused) {
  const auto refused = [](const std::vector<std::string>& args, const std::string& why) {
    const auto r = pe::testing::run_tool(pe::kFlamediff, args);
    BOOST_TEST(r.status == 2);
    BOOST_TEST(r.out.empty());
    BOOST_TEST(r.err == "flamediff: " + why + " (see --help)\n");
  };
  refused({}, "two profiles are needed");
  refused({"-", "-"}, "-: standard input can be read only once");
  refused({"a", "b", "c"}, "more than two profiles (compare runs: --runs A1 A2 -- B1 B2)");
  refused({"--runs", "a", "b"}, "--runs: a side has no profile (write --runs A1 A2 -- B1 B2)");
  refused({"--runs", "a", "--", "b", "-o", "x"}, "'-o': no such profile (options go before --)");
  refused({"--folded", "--text", "a", "b"}, "--folded, --text: cannot be combined");
  refused({"--folded", "--runs", "a", "--", "b"}, "--runs: cannot be combined with --folded");
  refused({"--normalize", "a", "b"}, "--normalize: only with --folded");
  refused({"-n", "x", "a", "b"}, "--top: not a whole number: 'x'");
  refused({"--width-from", "left", "a", "b"},
          "--width-from: not one of before, after, both: 'left'");
  refused({"--fail-over", "-1", "a", "b"}, "--fail-over: not a percentage: '-1'");
  refused({"--period", "x", "a", "b"}, "--period: not a whole number: 'x'");
  refused({"--strip", "(", "a", "b"}, "--strip: not a regular expression: '(': missing ): (");
}

BOOST_AUTO_TEST_CASE(a_file_of_its_own_is_written_when_there_is_a_result) {
  const TempDir dir;
  const std::string file = dir.file("out", "as it was");
  const auto failed =
      pe::testing::run_tool(pe::kFlamediff, {"-o", file, dir / "absent", dir / "absent"});
  BOOST_TEST(failed.status == 1);
  std::ifstream kept(file);
  BOOST_TEST(std::string(std::istreambuf_iterator<char>(kept), {}) == "as it was");
  BOOST_TEST(flamediff({"-o", file}, "", "").status == 2);  // no page with an error message
  std::ifstream still(file);
  BOOST_TEST(std::string(std::istreambuf_iterator<char>(still), {}) == "as it was");
  const auto r = flamediff({"-o", file}, kBefore, kAfter);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out.empty());
  std::ifstream written(file);
  BOOST_TEST(std::string(std::istreambuf_iterator<char>(written), {}).ends_with("</svg>\n"));
}

BOOST_AUTO_TEST_CASE(quiet_leaves_out_notes_but_not_what_grew) {
  const auto r = flamediff({"-q", "--text", "--fail-over", "5%"}, "bad\n" + kBefore, kAfter);
  BOOST_TEST(r.status == 3);
  BOOST_TEST(!contains(r.err, "ignored"));
  BOOST_TEST(contains(r.err, "--fail-over: run grew from"));
}

BOOST_AUTO_TEST_CASE(a_sample_stream_is_refused_with_the_command_that_folds_it) {
  const auto r = flamediff({}, kBefore, "PERFILE2 and more");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out.empty());
  BOOST_TEST(contains(r.err,
                      "/after: a sample stream or perf.data file, not folded text (fold it: "
                      "pe-symbolize FILE | stackfold)\n"));
}

BOOST_AUTO_TEST_SUITE_END()
