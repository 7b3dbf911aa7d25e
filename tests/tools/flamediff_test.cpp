// The graphs, tables and exit statuses of flamediff.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/flamediff.h"
#include "support/svg_frames.h"

using pe::testing::contains;
using pe::testing::drawn;
using pe::testing::flamediff;
using pe::testing::flamediff_runs;
using pe::testing::Rect;
using pe::testing::rects_of;
using pe::testing::row_of;
using pe::testing::TempDir;

BOOST_AUTO_TEST_SUITE(flamediff_tool)

namespace {

const std::string kBefore = "main;parse 300\nmain;run 500\nmain;old;deep 200\n";
const std::string kAfter = "main;parse 300\nmain;run 1400\nmain;fresh 300\n";

/// The first frame with this name.
Rect frame_of(const std::string& svg, std::string_view name) {
  for (const Rect& r : rects_of(svg))
    if (r.title.starts_with(fmt::format("{} (", name)))
      return r;
  BOOST_FAIL("no frame " << name);
  return {};
}

std::string fill_of(const std::string& svg, std::string_view name) {
  std::string_view left = svg;
  pe::testing::take_between(left, fmt::format("<title>{} (", name), "<rect");
  return pe::testing::take_between(left, "fill=\"", "\"");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_frame_has_both_counts_both_shares_and_the_change) {
  const auto r = flamediff({}, kBefore, kAfter);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err.empty());
  BOOST_TEST(frame_of(r.out, "all").title == "all (before 1,000 samples, after 2,000)");
  BOOST_TEST(
      frame_of(r.out, "run")
          .title.starts_with("run (before 500 samples, 50.00%; after 1,400, 70.00%; +20.00% (+"));
  BOOST_TEST(frame_of(r.out, "run").title.ends_with("), more than noise)"));
  BOOST_TEST(
      frame_of(r.out, "parse")
          .title.starts_with("parse (before 300 samples, 30.00%; after 300, 15.00%; -15.00% ("));
}

BOOST_AUTO_TEST_CASE(callers_have_the_change_of_all_below_them) {
  const auto r = flamediff({}, "a;b 100\na;c 100\nd 200\n", "a;b 150\na;c 150\nd 100\n");
  BOOST_TEST(contains(frame_of(r.out, "a").title, "before 200 samples, 50.00%; after 300, 75.00%"));
  BOOST_TEST(contains(frame_of(r.out, "a").title, "+25.00%"));
  BOOST_TEST(fill_of(r.out, "d") == "rgb(0,0,255)");
  BOOST_TEST(fill_of(r.out, "a") == "rgb(255,0,0)");
  BOOST_TEST(fill_of(r.out, "b") == "rgb(255,105,105)");
  BOOST_TEST(fill_of(r.out, "all") == "rgb(236,236,236)");
}

BOOST_AUTO_TEST_CASE(new_and_vanished_frames_are_marked) {
  const auto r = flamediff({}, kBefore, kAfter);
  BOOST_TEST(contains(frame_of(r.out, "fresh").title, "after 300, 15.00%; new, +15.00%"));
  BOOST_TEST(contains(frame_of(r.out, "deep").title, "after 0, 0.00%; gone, -20.00%"));
  BOOST_TEST(contains(r.out, "<g class=\"new\" data-at="));
  BOOST_TEST(contains(r.out, "<g class=\"dark gone\" data-at="));
  for (const char* meaning : {">new<", ">vanished<", ">grew<", ">shrank<"})
    BOOST_TEST(contains(r.out, meaning), meaning);
  const auto same = flamediff({}, kBefore, kBefore);
  BOOST_TEST(contains(same.out, ">as before<"));
  for (const char* meaning : {">new<", ">vanished<", ">grew<", ">shrank<", ">may be noise<"})
    BOOST_TEST(!contains(same.out, meaning), meaning);
}

BOOST_AUTO_TEST_CASE(vanished_stacks_stand_aside_when_widths_are_those_after) {
  const auto r = flamediff({"--width", "1220"}, kBefore, kAfter);
  BOOST_TEST(frame_of(r.out, "main").width == 1000.0);
  BOOST_TEST(frame_of(r.out, "run").width == 700.0);
  BOOST_TEST(frame_of(r.out, "[vanished]").width == 200.0);
  BOOST_TEST(frame_of(r.out, "deep").depth == 4);
  BOOST_TEST(frame_of(r.out, "deep").width == 200.0);
  BOOST_TEST(contains(frame_of(r.out, "[vanished]").title,
                      "before 200 samples, 20.00%; after 0, 0.00%; gone, -20.00%, noise unknown"));
}

BOOST_AUTO_TEST_CASE(widths_are_those_before_or_of_both) {
  const auto before = flamediff({"--width", "1170", "--width-from", "before"}, kBefore, kAfter);
  BOOST_TEST(frame_of(before.out, "main").width == 1000.0);
  BOOST_TEST(frame_of(before.out, "deep").width == 200.0);
  BOOST_TEST(frame_of(before.out, "deep").depth == 3);
  BOOST_TEST(frame_of(before.out, "[new]").width == 150.0);
  const auto both = flamediff({"--width", "1020", "--width-from", "both"}, kBefore, kAfter);
  BOOST_TEST(frame_of(both.out, "main").width == 1000.0);
  BOOST_TEST(frame_of(both.out, "run").width == 600.0);
  BOOST_TEST(frame_of(both.out, "deep").width == 100.0);
  BOOST_TEST(frame_of(both.out, "fresh").width == 75.0);
  BOOST_TEST(!contains(both.out, "[vanished]"));
}

BOOST_AUTO_TEST_CASE(absolute_counts_are_compared_as_they_are) {
  const auto r = flamediff({"--absolute"}, "a 1000\nb 1000\n", "a 1000\nb 2000\n");
  BOOST_TEST(contains(frame_of(r.out, "a").title,
                      "before 1,000 samples, 50.00%; after 1,000, 50.00%; 0.00%"));
  BOOST_TEST(contains(frame_of(r.out, "b").title, "after 2,000, 100.00%; +50.00% (+4"));
  BOOST_TEST(contains(frame_of(r.out, "all").title, "after 3,000, 150.00%; +50.00%"));
  const auto shares = flamediff({}, "a 1000\nb 1000\n", "a 1000\nb 2000\n");
  BOOST_TEST(contains(frame_of(shares.out, "a").title, "-16.67%"));
}

BOOST_AUTO_TEST_CASE(what_may_be_noise_is_dimmed_on_request) {
  const auto r =
      flamediff({"--only-significant"}, "a 500\nb 300\nc 200\n", "a 500\nb 100\nc 400\n");
  BOOST_TEST(fill_of(r.out, "a") == "rgb(220,220,220)");
  BOOST_TEST(fill_of(r.out, "c") == "rgb(255,0,0)");
  BOOST_TEST(contains(r.out, "<g class=\"dim\" data-at="));
}

BOOST_AUTO_TEST_CASE(builds_compare_in_spite_of_what_compilers_add) {
  const std::string before = "main;f.isra.0;v<int>::g 10\nmain;lib+0x12 5\n";
  const std::string after = "main;f.cold;v<long>::g 10\nmain;lib+0x99 5\n";
  const auto r = flamediff({}, before, after);
  BOOST_TEST(
      contains(frame_of(r.out, "v&lt;...&gt;::g").title, "before 10 samples, 66.67%; after 10"));
  BOOST_TEST(contains(frame_of(r.out, "lib+0x...").title, "before 5 samples, 33.33%; after 5"));
  BOOST_TEST(contains(flamediff({"--no-strip"}, before, after).out, "f.isra.0 (before 10"));
  BOOST_TEST(contains(flamediff({"--strip", "^v.*::", "--strip", "[0-9]"}, before, after).out,
                      "<title>g (before 10"));
}

BOOST_AUTO_TEST_CASE(one_operand_is_compared_with_standard_input) {
  const TempDir dir;
  const auto r = pe::testing::run_tool(pe::kFlamediff, {dir.file("a", "x 10\n")}, "x 20\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.out, "x (before 10 samples, 100.00%; after 20, 100.00%"));
  BOOST_TEST(contains(r.out, "after: stdin, 20 samples</text>"));
  BOOST_TEST(pe::testing::run_tool(pe::kFlamediff, {dir / "a", "-"}, "").err ==
             "flamediff: stdin: the profile after is empty\n");
}

BOOST_AUTO_TEST_CASE(malformed_lines_are_counted_for_each_file) {
  const auto r = flamediff({}, "x\na 100\n-4\n", "a 100\nneg -4\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.err, "flamediff: ignored 2 lines that are not \"stack count\"; first: "));
  BOOST_TEST(contains(r.err, "before:1: 'x'\n"));
  BOOST_TEST(contains(r.err, "after:2: 'neg -4'\n"));
  BOOST_TEST(contains(r.out, "a (before 100 samples, 100.00%; after 100, 100.00%"));
}

BOOST_AUTO_TEST_CASE(an_empty_profile_makes_everything_new_or_vanished) {
  const auto fresh = flamediff({}, "", kAfter);
  BOOST_TEST(fresh.status == 0);
  BOOST_TEST(contains(fresh.err, "/before: the profile before is empty\n"));
  BOOST_TEST(
      contains(frame_of(fresh.out, "main").title,
               "before 0 samples, 0.00%; after 2,000, 100.00%; new, +100.00%, noise unknown"));
  const auto gone = flamediff({}, kBefore, "");
  BOOST_TEST(gone.status == 0);
  BOOST_TEST(contains(gone.err, "/after: the profile after is empty\n"));
  BOOST_TEST(contains(frame_of(gone.out, "deep").title, "gone, -20.00%"));
  BOOST_TEST(frame_of(gone.out, "[vanished]").width == 1180.0);
  for (const char* mode : {"--text", "--absolute"})
    BOOST_TEST(flamediff({mode}, "", kAfter).status == 0);
}

BOOST_AUTO_TEST_CASE(two_empty_profiles_give_a_page_that_says_so) {
  const auto r = flamediff({}, "", "a 0\n");
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.err == "flamediff: no stack with a count in either profile\n");
  BOOST_TEST(r.out.ends_with("</svg>\n"));
  BOOST_TEST(flamediff({"--text"}, "", "").status == 2);
}

BOOST_AUTO_TEST_CASE(single_samples_are_too_rare_to_tell) {
  const auto r = flamediff({}, "a 1\n", "b 1\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(frame_of(r.out, "b").title, "new, +100.00% ("));
  BOOST_TEST(contains(frame_of(r.out, "b").title, "too rare to tell"));
  BOOST_TEST(contains(frame_of(r.out, "a").title, "too rare to tell"));
}

BOOST_AUTO_TEST_CASE(growth_beyond_noise_and_the_limit_fails) {
  const auto grown = flamediff({"--text", "--fail-over", "5%"}, kBefore, kAfter);
  BOOST_TEST(grown.status == 3);
  BOOST_TEST(
      contains(grown.err, "flamediff: --fail-over: run grew from 50.00% to 70.00% (+20.00%, "));
  BOOST_TEST(contains(grown.err, "fresh grew from 0.00% to 15.00%"));
  BOOST_TEST(!contains(grown.err, "parse"));
  BOOST_TEST(contains(row_of(grown.out, "run"), " sure "));
  BOOST_TEST(flamediff({"--fail-over", "25"}, kBefore, kAfter).status == 0);
  // It grew as much, but this may be noise.
  const auto noise = flamediff({"--fail-over", "5%"}, "a 10\nb 10\n", "a 14\nb 6\n");
  BOOST_TEST(noise.status == 0);
  BOOST_TEST(
      noise.err ==
      "flamediff: a grew from 50.00% to 70.00%, but there are too few samples to tell this from "
      "noise (20 and 20): record longer, or compare several runs (stackpipe runs ci --runs N)\n");
  BOOST_TEST(flamediff({"--fail-over", "25%"}, "a 10\nb 10\n", "a 14\nb 6\n").err.empty());
}

BOOST_AUTO_TEST_CASE(growth_that_may_be_noise_is_counted_and_the_most_of_it_named) {
  const auto r = flamediff({"--text", "--fail-over", "2"}, "m;a 10\nm;b 10\nm;c 20\n",
                           "m;a 12\nm;b 14\nm;c 14\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(
      contains(r.err,
               "flamediff: 2 functions grew by more than 2%; the most: b grew from 25.00% to "
               "35.00%, but there are too few samples to tell this from noise (40 and 40)"));
  const auto runs = flamediff_runs({"--text", "--fail-over", "2"}, {"a 10\nb 10\n", "a 9\nb 11\n"},
                                   {"a 12\nb 8\n", "a 13\nb 7\n"});
  BOOST_TEST(runs.status == 0);
  BOOST_TEST(contains(runs.err, "but there are too few runs to tell this from noise: "));
}

// One function was removed, so the others have larger shares.  Each unit of work costs as much in
// them as before, because the program did twice the work.
BOOST_AUTO_TEST_CASE(only_the_cost_of_work_is_worse_or_better) {
  const std::string before = "main;parse 200\nmain;split 200\nmain;look_up 400\n";
  const std::string after = "main;parse 400\nmain;split 400\n";
  const auto shares = flamediff({"--text"}, before, after);
  BOOST_TEST(contains(row_of(shares.out, "parse"), "+25.00%"));
  BOOST_TEST(contains(shares.out, "\nchanges in shares beyond noise, largest first\n"));
  for (const char* word : {"worse", "better"})
    BOOST_TEST(!contains(shares.out, word));
  const auto cost = flamediff({"--text", "--per", "100,200", "--fail-over", "5%"}, before, after);
  BOOST_TEST(cost.status == 0);
  BOOST_TEST(contains(cost.out, "\ncost per unit of work: before 8 samples, after 4: -50.00% (-"));
  BOOST_TEST(contains(cost.out, "percentages of the earlier cost per unit of work\n"));
  BOOST_TEST(row_of(cost.out, "parse").empty());  // costs the same
  BOOST_TEST(row_of(cost.out, "look_up").starts_with("  50.00%    0.00%  -50.00%"));
  BOOST_TEST(contains(cost.out, "\nchanges in the cost per unit of work beyond noise, largest"));
}

BOOST_AUTO_TEST_CASE(cost_that_grew_fails_though_the_share_did_not) {
  const std::string before = "main;a 400\nmain;b 400\n";
  BOOST_TEST(flamediff({"--text", "--fail-over", "5%"}, before, before).status == 0);
  const auto r = flamediff({"--text", "--fail-over", "5%", "--per", "200,100"}, before, before);
  BOOST_TEST(r.status == 3);
  BOOST_TEST(contains(r.err,
                      "--fail-over: a grew from 50.00% to 100.00% of the earlier cost per unit of "
                      "work (+50.00%, "));
}

BOOST_AUTO_TEST_CASE(each_run_has_its_own_amount_of_work) {
  const auto r = flamediff_runs({"--text", "--per", "10+20,30+10"},
                                {"m;a 100\nm;b 50\n", "m;a 200\nm;b 100\n"},
                                {"m;a 300\nm;b 150\n", "m;a 100\nm;b 50\n"});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.out, "before 15 samples, after 15: 0.00% ("));
  BOOST_TEST(row_of(r.out, "a").empty());
}

BOOST_AUTO_TEST_CASE(amounts_of_work_are_checked) {
  for (const char* wrong : {"1", "0,1", "1,-1", "1,", "a,1", "1+2,1", "nan,1", "1,2,3", "1e3,1"}) {
    const auto r = flamediff({"--text", "--per", wrong}, kBefore, kAfter);
    BOOST_TEST(r.status == 2, "took '" << wrong << "'");
    BOOST_TEST(contains(r.err, "--per: "));
  }
  BOOST_TEST(flamediff({"--per", "1,1", "--absolute"}, kBefore, kAfter).status == 2);
  BOOST_TEST(flamediff({"--per", "1,1", "--folded"}, kBefore, kAfter).status == 2);
}

BOOST_AUTO_TEST_CASE(growth_cannot_be_judged_where_a_profile_is_empty) {
  const auto refused = [](const pe::testing::Result& r, const std::string& side) {
    BOOST_TEST(r.status == 1);
    BOOST_TEST(r.err.starts_with("flamediff: --fail-over: "));
    BOOST_TEST(r.err.ends_with(fmt::format(": the profile {} is empty\n", side)));
    BOOST_TEST(!contains(r.err, "do not look like samples"));
    BOOST_TEST(contains(r.out, "one profile is empty"));
  };
  refused(flamediff({"--text", "--fail-over", "2%"}, kBefore, ""), "after");
  refused(flamediff({"--text", "--fail-over", "2%"}, "", kAfter), "before");
  refused(flamediff_runs({"--text", "--fail-over", "2%"}, {kBefore, kBefore}, {"", ""}), "after");
  refused(flamediff_runs({"--fail-over", "2%"}, {"", ""}, {kAfter, kAfter}), "before");
}

BOOST_AUTO_TEST_CASE(empty_runs_tell_nothing_of_what_runs_differ_by) {
  const auto r =
      flamediff_runs({"--text", "--fail-over", "2%", "--period", "0"}, {kBefore, ""}, {kAfter});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(contains(r.err, "so the noise is unknown (see flamediff --period, --runs)"));
}

BOOST_AUTO_TEST_CASE(a_renamed_program_is_compared_with_itself) {
  const std::string message =
      "flamediff: the root frame is 'a' before and 'a2' after: compared as one frame (--no-strip: "
      "as two)\n";
  const std::string before = "a;main;f 100\na;main;g 100\n";
  const std::string after = "a2;main;f 150\na2;main;g 50\n";
  const auto r = flamediff({}, before, after);
  BOOST_TEST(r.err == message);
  BOOST_TEST(
      frame_of(r.out, "a2").title.starts_with("a2 (before 200 samples, 100.00%; after 200,"));
  BOOST_TEST(
      frame_of(r.out, "f").title.starts_with("f (before 100 samples, 50.00%; after 150, 75.00%;"));
  BOOST_TEST(!contains(r.out, "[vanished]"));
  const auto runs = flamediff_runs({"--text"}, {before, before}, {after, after});
  BOOST_TEST(runs.err == message);
  BOOST_TEST(row_of(runs.out, "f").starts_with("  50.00%   75.00%"));
  const auto apart = flamediff({"--no-strip"}, before, after);
  BOOST_TEST(apart.err.empty());
  BOOST_TEST(contains(apart.out, "[vanished]"));
}

// The shell that starts a program may have a sample before it becomes the program.
BOOST_AUTO_TEST_CASE(a_renamed_program_may_have_been_started_by_a_shell) {
  const std::string before = "a;main;f 100\na;main;g 100\nsh;exec 1\n";
  const std::string after = "a2;main;f 150\na2;main;g 50\nsh;exec 2\n";
  const auto r = flamediff({}, before, after);
  BOOST_TEST(contains(r.err, "the root frame is 'a' before and 'a2' after"));
  BOOST_TEST(frame_of(r.out, "f").title.starts_with("f (before 100 samples, 49.75%; after 150,"));
  BOOST_TEST(frame_of(r.out, "sh").title.starts_with("sh (before 1 samples, 0.50%; after 2,"));
  BOOST_TEST(!contains(r.out, "[vanished]"));
}

// A build also runs other programs, as much before as after.
BOOST_AUTO_TEST_CASE(a_renamed_program_may_be_one_of_several) {
  const std::string before = "cc1;main;parse 500\nas;main;read 300\nmake;main 200\n";
  const std::string after = "cc1-13;main;parse 500\nas;main;read 300\nmake;main 200\n";
  const auto r = flamediff({"--text", "--absolute", "--fail-over", "1%"}, before, after);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.err, "the root frame is 'cc1' before and 'cc1-13' after"));
  BOOST_TEST(contains(r.out, "largest first\n  none\n"));
  // Even if the names stay apart, a name of a program is not a function that grew.
  const auto apart =
      flamediff({"--text", "--absolute", "--no-strip", "--fail-over", "1%"}, before, after);
  BOOST_TEST(apart.status == 0);
  BOOST_TEST(contains(apart.out, "\nchanges in the count beyond noise, largest first\n  BEFORE"));
}

// The file has no symbols, so its name is in those of frames.
BOOST_AUTO_TEST_CASE(a_renamed_program_without_symbols_is_compared_with_itself) {
  const std::string before = "gz;main;gz+0x4290 500\ngz;main;[gz] 300\ngz;main;gzip 200\n";
  const std::string after = "gz2;main;gz2+0x5390 500\ngz2;main;[gz2] 300\ngz2;main;gzip 200\n";
  const auto r = flamediff({"--text", "--absolute", "--fail-over", "1%"}, before, after);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.out, "largest first\n  none\n"));
  BOOST_TEST(!contains(r.out, "other function"));
}

// "a" did not become "b": it is on both sides, if rarely.
BOOST_AUTO_TEST_CASE(programs_that_run_on_both_sides_are_not_joined) {
  const auto r = flamediff({"--text"}, "a;f 1000\n", "b;f 1000\na;f 1\n");
  BOOST_TEST(!contains(r.err, "compared as one"));
}

BOOST_AUTO_TEST_CASE(several_programs_on_a_side_are_not_joined) {
  for (const char* after : {"b;f 10\nc;f 10\n", "b 10\n", "a;f 10\n", "b;f 0\n"})
    BOOST_TEST(!contains(flamediff({"--text"}, "a;f 10\n", after).err, "compared as one"));
}

BOOST_AUTO_TEST_CASE(the_subtitle_says_how_much_is_certain) {
  const auto subtitle = [](const std::string& svg) {
    std::string_view left = svg;
    pe::testing::take_between(left, "</style>", "id=\"subtitle\"");
    return pe::testing::take_between(left, ">", "</text>");
  };
  BOOST_TEST(subtitle(flamediff({}, "a 10\nb 10\n", "a 14\nb 6\n").out)
                 .starts_with("no frame changed by more than noise; before: "));
  BOOST_TEST(subtitle(flamediff({}, "a 400\nb 600\n", "a 600\nb 400\n").out)
                 .starts_with("2 frames changed by more than noise; before: "));
  BOOST_TEST(subtitle(flamediff({"--period", "0"}, kBefore, kAfter).out)
                 .starts_with("noise unknown: the counts do not look like samples; before: "));
  BOOST_TEST(subtitle(flamediff({}, kBefore, "").out)
                 .starts_with("noise unknown: one profile is empty; before: "));
}

BOOST_AUTO_TEST_CASE(what_may_be_noise_is_no_more_than_a_tint) {
  const auto same = flamediff({}, "a 10\nb 10\n", "a 14\nb 6\n");
  BOOST_TEST(fill_of(same.out, "a") == "rgb(255,170,170)");
  BOOST_TEST(fill_of(same.out, "b") == "rgb(170,170,255)");
  // With 1,000 samples, a change of 20 % is certain, and a change of 0.3 % is not.
  const auto mixed = flamediff({}, "a 400\nb 590\nc 10\n", "a 600\nb 387\nc 13\n");
  BOOST_TEST(fill_of(mixed.out, "a") == "rgb(255,3,3)");
  BOOST_TEST(fill_of(mixed.out, "b") == "rgb(0,0,255)");
  BOOST_TEST(fill_of(mixed.out, "c") == "rgb(255,206,206)");
  BOOST_TEST(fill_of(flamediff({"--period", "0"}, "a 10\nb 10\n", "a 14\nb 6\n").out, "a") ==
             "rgb(255,0,0)");
}

BOOST_AUTO_TEST_CASE(intervals_of_runs_end_at_what_is_possible) {
  const auto r = flamediff_runs({"--text", "--with-noise"}, {"a 900\nb 100\n", "a 100\nb 900\n"},
                                {"a 100\nb 900\n", "a 950\nb 50\n"});
  BOOST_TEST(contains(row_of(r.out, "a"), "-100.00% .. +100.00%"));  // all of it may be noise
}

BOOST_AUTO_TEST_CASE(growth_cannot_be_judged_without_samples) {
  const auto r = flamediff({"--fail-over", "5%", "--countname", "ms"}, kBefore, kAfter);
  BOOST_TEST(r.status == 1);
  BOOST_TEST(contains(r.err,
                      "flamediff: --fail-over: the counts do not look like samples, so the noise "
                      "is unknown (see flamediff --period, --runs)\n"));
  BOOST_TEST(flamediff({"--fail-over", "5%", "--countname", "ms", "--period", "1"}, kBefore, kAfter)
                 .status == 3);
}

BOOST_AUTO_TEST_CASE(weights_that_are_no_samples_are_not_taken_for_them) {
  std::string before;
  std::string after;
  std::string periods;
  for (int i = 0; i < 40; ++i) {
    before += fmt::format("main;f{} {}\n", i, 1'000'003 + i * 7919);
    after += fmt::format("main;f{} {}\n", i, 1'000'003 + (i % 7) * 104'729);
    periods += fmt::format("main;f{} {}\n", i, 250'000 * (i + 1));
  }
  const auto weights = flamediff({"--text"}, before, after);
  BOOST_TEST(contains(weights.out, "noise: unknown"));
  BOOST_TEST(contains(weights.err, "do not look like samples"));
  BOOST_TEST(contains(row_of(weights.out, "f6"), " ? "));
  BOOST_TEST(contains(flamediff({"--text"}, periods, periods).out, "(a sample counts 250000)"));
  BOOST_TEST(contains(flamediff({"--text"}, "a 1.5\n", "a 2.5\n").out, "noise: unknown"));
  BOOST_TEST(
      contains(flamediff({"--text", "--period", "1"}, before, after).out, "noise: from sampling"));
}

BOOST_AUTO_TEST_CASE(runs_tell_what_runs_differ_by) {
  const std::vector<std::string> steady = {"a 500\nb 500\n", "a 505\nb 495\n", "a 495\nb 505\n"};
  const std::vector<std::string> wild = {"a 600\nb 400\n", "a 900\nb 100\n", "a 400\nb 600\n"};
  const std::vector<std::string> more = {"a 600\nb 400\n", "a 605\nb 395\n", "a 595\nb 405\n"};
  BOOST_TEST(contains(row_of(flamediff_runs({"--text"}, steady, more).out, "a"), " sure "));
  BOOST_TEST(contains(row_of(flamediff_runs({"--text", "--with-noise"}, steady, wild).out, "a"),
                      " noise "));
  BOOST_TEST(
      contains(flamediff_runs({}, steady, more).out, "before: 3 runs, 3,000 samples; after:"));
  BOOST_TEST(flamediff_runs({"--fail-over", "5%", "--text"}, steady, more).status == 3);
  BOOST_TEST(contains(flamediff_runs({"--text", "--absolute"}, steady, {more[0], more[1]}).out,
                      "percentages of the earlier count"));
}

BOOST_AUTO_TEST_CASE(same_input_same_bytes) {
  BOOST_TEST((flamediff({"--subtitle", "x"}, kBefore, kAfter).out ==
              flamediff({"--subtitle", "x"}, kBefore, kAfter).out));
}

BOOST_AUTO_TEST_CASE(names_cannot_become_markup) {
  const auto r = flamediff({"--no-strip"}, "<script>\"&;x 100\n", "]]>;y 100\n");
  BOOST_TEST(!contains(r.out, "<script>\""));
  BOOST_TEST(contains(r.out, "&lt;script&gt;"));
  BOOST_TEST(!contains(flamediff({"--text"}, "a 1\n", "\x1b[31m 100\n").out, "\x1b"));
}

BOOST_AUTO_TEST_CASE(deep_stacks_and_huge_counts_pass) {
  std::string deep = "f";
  for (int i = 0; i < 100'000; ++i)
    deep += ";f";
  BOOST_TEST(flamediff({"--embed", "all"}, deep + " 10\n", deep + ";g 20\n").status == 0);
  const auto huge = flamediff({"--period", "1"}, "a 18446744073709551615\nb 18446744073709551615\n",
                              "a 18446744073709551615\n");
  BOOST_TEST(huge.status == 0);
  BOOST_TEST(contains(huge.err, "overflow 64 bits"));
}

BOOST_AUTO_TEST_CASE(counts_of_wholly_different_profiles_are_conserved) {
  const auto r = flamediff({"--width-from", "both"}, "a;b 30\nc 10\n", "d;e 7\nf 1\n");
  BOOST_TEST(contains(frame_of(r.out, "all").title, "before 40 samples, after 8)"));
  BOOST_TEST(frame_of(r.out, "a").width + frame_of(r.out, "c").width + frame_of(r.out, "d").width +
                     frame_of(r.out, "f").width ==
                 1180.0,
             boost::test_tools::tolerance(0.001));
}

BOOST_AUTO_TEST_CASE(from_time_of_threads_to_time_on_the_clock_it_says_what_that_means) {
  const std::string facts = "# unit: us\n", elapsed = facts + "# weight: elapsed\n";
  const std::string meaning =
      "time of threads before, time on the clock after: what grew does not run in parallel";
  const auto r =
      flamediff({}, facts + "main;a 100\nmain;b 400\n", elapsed + "main;a 100\nmain;b 100\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.err, "flamediff: " + meaning + "\n"));
  BOOST_TEST(contains(r.out, meaning + "</text>"));
  BOOST_TEST(!contains(flamediff({}, elapsed + "a 1\n", elapsed + "a 2\n").err, meaning));
  BOOST_TEST(!contains(flamediff({}, elapsed + "a 1\n", facts + "a 2\n").err, meaning));
}

BOOST_AUTO_TEST_SUITE_END()
