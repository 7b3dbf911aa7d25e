// The table of flamediff: its rows, its words, and that the status agrees with them.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/flamediff.h"
#include "support/svg_frames.h"

using pe::testing::contains;
using pe::testing::flamediff;
using pe::testing::flamediff_runs;
using pe::testing::row_of;

BOOST_AUTO_TEST_SUITE(flamediff_table)

namespace {

const std::string kBefore = "main;parse 300\nmain;run 500\nmain;old;deep 200\n";
const std::string kAfter = "main;parse 300\nmain;run 1400\nmain;fresh 300\n";

}  // namespace

BOOST_AUTO_TEST_CASE(the_table_has_functions_whose_share_changed) {
  const auto r = flamediff({"--text"}, kBefore, kAfter);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(
      r.out.starts_with("before: 1,000 samples; after: 2,000 samples; percentages of each "
                        "profile\nnoise: from sampling"));
  const std::string run = row_of(r.out, "run");
  BOOST_TEST(run.starts_with("  50.00%   70.00%  +20.00%  "));
  BOOST_TEST(contains(run, " sure    50.00%   70.00%  +20.00%  run"));
  BOOST_TEST(contains(row_of(r.out, "old"), " 20.00%    0.00%  -20.00%"));
  BOOST_TEST(row_of(r.out, "main").empty());  // 100 % of both sides
  BOOST_TEST(contains(r.out, "\nchanges in shares beyond noise, largest first\n"));
  BOOST_TEST(r.out.find("  run\n") < r.out.find("  parse\n"));
  BOOST_TEST(!contains(r.out, "may be noise"));
}

// Two functions changed, thirty others did not.
BOOST_AUTO_TEST_CASE(the_table_has_only_changes_beyond_noise_and_a_line_for_the_rest) {
  std::string before = "main;slower 2000\nmain;faster 2000\n";
  std::string after = "main;slower 2600\nmain;faster 1400\n";
  for (int i = 0; i < 30; ++i) {
    before += fmt::format("main;f{} {}\n", i, 100 + i % 3);
    after += fmt::format("main;f{} {}\n", i, 101 - i % 3);
  }
  const auto r = flamediff({"--text"}, before, after);
  BOOST_TEST(contains(row_of(r.out, "slower"), "+8.69%  "));
  BOOST_TEST(contains(row_of(r.out, "faster"), "-8.45%  "));
  BOOST_TEST(contains(
      r.out,
      "\n30 other functions with changes that may be noise, at most -0.04% (--with-noise)\n"));
  BOOST_TEST(std::ranges::count(r.out, '\n') == 8);
  const auto all = flamediff({"--text", "--with-noise", "-n", "0"}, before, after);
  BOOST_TEST(std::ranges::count(all.out, '\n') == 38);
  BOOST_TEST(contains(row_of(all.out, "f2"), " noise "));
  BOOST_TEST(!contains(all.out, "(--with-noise)"));
  BOOST_TEST(flamediff({"--with-noise"}, before, after).status == 2);
}

// f calls less than before, and does more itself: its change is its own.
BOOST_AUTO_TEST_CASE(a_row_has_one_word) {
  const auto r = flamediff({"--text"}, "main;f 100\nmain;f;g 900\nmain;h 1000\n",
                           "main;f 400\nmain;f;g 610\nmain;h 990\n");
  BOOST_TEST(contains(row_of(r.out, "f"), " self "));
  for (const char* word : {"sure", "noise", "rare"})
    BOOST_TEST(!contains(row_of(r.out, "f"), word));
  BOOST_TEST(contains(row_of(r.out, "f"), "+0.50%"));   // with g
  BOOST_TEST(contains(row_of(r.out, "f"), "+15.00%"));  // itself
  BOOST_TEST(contains(
      r.out, "\nself: the function itself, without its callees, changed by more than noise"));
  BOOST_TEST(contains(row_of(r.out, "g"), " sure "));
}

// The interval of each row is on one side of 0 if it is sure, and the status follows the rows.
BOOST_AUTO_TEST_CASE(table_interval_and_status_agree) {
  const std::vector<std::string> before = {"p;main;f 1000\n", "p;main;f 1200\n", "p;main;f 1100\n"};
  const std::vector<std::string> after = {"p;main;f 1100\n", "p;main;f 1400\n", "p;main;f 1250\n"};
  const auto r = flamediff_runs({"--text", "--absolute", "--fail-over", "1%"}, before, after);
  BOOST_TEST(contains(r.out, "count per run: before 1100 samples, after 1250: +13.64% (-"));
  BOOST_TEST(contains(r.out, "%), noise\n"));
  BOOST_TEST(contains(r.out, "beyond noise, largest first\n  none\n"));
  BOOST_TEST(r.status == 0);
  const auto more = flamediff_runs({"--text", "--absolute", "--fail-over", "1%"}, before,
                                   {"p;main;f 2100\n", "p;main;f 2000\n", "p;main;f 2050\n"});
  BOOST_TEST(more.status == 3);
  BOOST_TEST(contains(more.out, "after 2050: +86.36% (+"));
  BOOST_TEST(contains(row_of(more.out, "main"), " sure "));
  BOOST_TEST(contains(more.err, "everything grew from 100.00% to 186.36% of the earlier count"));
  BOOST_TEST(contains(more.err, "main grew from 100.00% to 186.36%"));
  BOOST_TEST(!contains(more.err, "p grew"));  // the name of the program
}

BOOST_AUTO_TEST_CASE(recursion_counts_once_in_the_table) {
  const auto r = flamediff({"--text"}, "f;g;f 50\nx 50\n", "f;g;f 80\nx 20\n");
  BOOST_TEST(row_of(r.out, "f").starts_with("  50.00%   80.00%  +30.00%"));
}

BOOST_AUTO_TEST_CASE(tables_are_cut_and_say_so) {
  std::string before = "x 10007\n";
  std::string after = "x 10007\n";
  for (int i = 0; i < 30; ++i)
    after += fmt::format("f{} 101\n", i);
  const auto cut = flamediff({"--text", "--top", "5"}, before, after);
  BOOST_TEST(contains(cut.out, "  and 26 more (--top)\n"));
  const auto all = flamediff({"--text", "-n", "0"}, before, after);
  BOOST_TEST(contains(all.out, "  f29\n"));
}

// One Java program, recorded twice: the JVM numbers its lambdas by the order in which they load,
// and the second run interpreted some functions that the first compiled.
BOOST_AUTO_TEST_CASE(lambdas_of_two_runs_are_one_function) {
  const std::string before =
      "java;L.main_[s];L$$Lambda$1.f_[j];L.lambda$main$0_[i];L.work_[i] 285\n"
      "java;L.main_[s];L$$Lambda$1.f_[j];L.lambda$main$0_[i];L.work_[j] 247\n";
  const std::string after =
      "java;L.main_[s];L$$Lambda$4/0x00007f0a1c0d2000.f_[s];L.lambda$main$3_[s];L.work_[j] 532\n";
  const auto r = flamediff({"--text", "--fail-over", "1%"}, before, after);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.out, "largest first\n  none\n"));
  BOOST_TEST(!contains(r.out, "other function"));
  const auto kept = flamediff({"--text", "--no-strip", "--fail-over", "1%"}, before, after);
  BOOST_TEST(kept.status == 3);
}

BOOST_AUTO_TEST_CASE(the_table_is_also_json_and_markdown) {
  const auto json = flamediff({"--json"}, kBefore, kAfter);
  BOOST_TEST(json.status == 0);
  BOOST_TEST(
      json.out.starts_with("{\"version\":1,\"unit\":\"samples\",\"before\":1000,\"after\":2000,"
                           "\"percent_of\":\"shares\","
                           "\"knows_noise\":true,\n \"left_out\":{\"noise\":0,\"lines\":"));
  BOOST_TEST(contains(json.out,
                      "{\"before\":500,\"after\":1400,\"before_percent\":50.0000,"
                      "\"after_percent\":70.0000,\"change_percent\":20.0000,"));
  BOOST_TEST(
      contains(json.out, "\"verdict\":\"sure\",\"is_of_self\":false,\"interval_percent\":["));
  BOOST_TEST(contains(json.out, "],\"name\":\"run\"}"));
  const auto table = flamediff({"--markdown"}, kBefore, kAfter);
  BOOST_TEST(
      table.out.starts_with("| before | after | change | interval | verdict | function |\n"
                            "| ---: | ---: | ---: | ---: | --- | --- |\n| "));
  BOOST_TEST(contains(table.out, "| 50.00% | 70.00% | +20.00% | "));
  BOOST_TEST(contains(table.out, " | sure | `run` |\n"));
  BOOST_TEST(table.out.ends_with("\n\nBefore 1,000 samples, after 2,000.\n"));
  BOOST_TEST(contains(flamediff({"--json", "--with-noise", "--period", "0"}, kBefore, kAfter).out,
                      "\"verdict\":\"unknown\",\"is_of_self\":false,\"interval_percent\":null,"));
  BOOST_TEST(flamediff({"--json", "--markdown"}, kBefore, kAfter).err ==
             "flamediff: --json, --markdown: cannot be combined (see --help)\n");
  BOOST_TEST(flamediff({"--folded", "--json"}, kBefore, kAfter).err ==
             "flamediff: --folded, --json: cannot be combined (see --help)\n");
}

BOOST_AUTO_TEST_SUITE_END()
