// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "support/costly.h"
#include "support/flamesvg.h"
#include "support/svg_frames.h"
#include "support/temp_dir.h"

using pe::testing::contains;
using pe::testing::drawn;
using pe::testing::flamesvg;
using pe::testing::Rect;
using pe::testing::rects_of;

BOOST_AUTO_TEST_SUITE(flamesvg_tool)

namespace {

std::string random_profile() {
  std::mt19937 random(7);  // NOLINT: the same profile every time
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    for (auto frames = random() % 20 + 1; frames > 0; --frames)
      text += "f" + std::to_string(random() % 4) + (frames > 1 ? ";" : " ");
    text += std::to_string(random() % 1000) + "." + std::to_string(random() % 1000) + "\n";
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(draws_a_call_tree_from_standard_input) {
  const auto r = flamesvg({}, "foo 100\nfoo.cold 50\nfoo;bar 250\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err.empty());
  BOOST_TEST(drawn(r.out) ==
             "all (400 samples, 100%) at 10.0 wide 1180.0\n"
             "foo (350 samples, 87.50%) at 10.0 wide 1032.5\n"
             "bar (250 samples, 62.50%) at 305.0 wide 737.5\n"
             "foo.cold (50 samples, 12.50%) at 1042.5 wide 147.5\n");
}

BOOST_AUTO_TEST_CASE(several_files_are_one_profile) {
  const pe::testing::TempDir dir;
  const auto r = flamesvg({dir.file("a", "x 1\n"), "-", dir.file("b", "x 2")}, "y 1");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.out, "<title>x (3 samples, 75.00%)</title>"));
}

BOOST_AUTO_TEST_CASE(same_input_same_bytes) {
  const std::string profile = random_profile();
  BOOST_TEST((flamesvg({}, profile).out == flamesvg({}, profile).out));
}

BOOST_AUTO_TEST_CASE(counts_are_grouped_and_scaled) {
  BOOST_TEST(contains(flamesvg({}, "a 1234567\nb 98765433\n").out, "a (1,234,567 samples, 1.23%)"));
  BOOST_TEST(contains(flamesvg({"--factor", "0.5", "--countname", "ms"}, "a 3000\n").out,
                      "a (1,500 ms, 100.00%)"));
  BOOST_TEST(contains(flamesvg({"--total", "400"}, "a 100\n").out, "a (100 samples, 25.00%)"));
  BOOST_TEST(contains(flamesvg({}, "a 0.156\nb 0.98\n").out, "a (0.156 samples, 13.73%)"));
  BOOST_TEST(contains(flamesvg({"--factor", "0.001"}, "a 2367\nb 10\n").out, "a (2.37 samples,"));
  BOOST_TEST(contains(flamesvg({"--factor", "0.001"}, "a 2367\nb 10\n").out, "b (0.01 samples,"));
}

BOOST_AUTO_TEST_CASE(a_total_below_the_sum_is_ignored) {
  const auto r = flamesvg({"--total", "50"}, "a 100\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "flamesvg: --total: ignored, because the counts add up to more\n");
  BOOST_TEST(contains(r.out, "a (100 samples, 100.00%)"));
}

BOOST_AUTO_TEST_CASE(malformed_lines_are_counted_and_the_first_is_shown) {
  const auto r = flamesvg({}, "a 100\nnonsense\n<x>\r\nb 100\r\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(
      r.err ==
      "flamesvg: ignored 2 lines that are not \"stack count\"; first: stdin:2: 'nonsense'\n");
  BOOST_TEST(contains(r.out, "b (100 samples, 50.00%)"));
}

BOOST_AUTO_TEST_CASE(input_without_a_stack_gives_a_page_that_says_so) {
  for (const char* input : {"", "\n", "a 0\n"}) {
    const auto r = flamesvg({}, input);
    BOOST_TEST(r.status == 2);
    BOOST_TEST(r.err == "flamesvg: no stack with a count in the input\n");
    BOOST_TEST(contains(r.out, ">no stack with a count in the input</text>"));
    BOOST_TEST(r.out.ends_with("</svg>\n"));
  }
}

BOOST_AUTO_TEST_CASE(text_without_a_folded_line_is_reported_with_the_remedy) {
  const auto r = flamesvg({"-q"}, "prog 1/2 1.0: 5 cycles:\n");
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.err ==
             "flamesvg: no stack with a count in the input (fold a profiler's text with stackfold "
             "first)\n");
}

BOOST_AUTO_TEST_CASE(a_sample_stream_is_refused_except_by_the_perl) {
  const std::string stream("PERFILE2\x10\0\1\n\2\n", 13);
  const auto r = flamesvg({}, stream);
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err ==
             "flamesvg: stdin: a sample stream or perf.data file, not folded text (fold it: "
             "pe-symbolize FILE | stackfold)\n");
  const auto perl = flamesvg({"--compat"}, stream);
  BOOST_TEST(perl.status == 2);
  BOOST_TEST(perl.out.ends_with("</svg>\n"));
}

BOOST_AUTO_TEST_CASE(narrow_frames_are_left_out_and_the_page_is_as_high_as_what_is_drawn) {
  const std::string profile = "a 9999\nb;c;d;e 1\n";
  BOOST_TEST(rects_of(flamesvg({"--minwidth", "1%"}, profile).out).size() == 2U);
  BOOST_TEST(contains(flamesvg({"--minwidth", "1%"}, profile).out, "height=\"106\""));
  BOOST_TEST(rects_of(flamesvg({"--embed", "none"}, profile).out).size() == 6U);
  BOOST_TEST(rects_of(flamesvg({"--embed", "none", "--minwidth", "0.2"}, profile).out).size() ==
             2U);
}

BOOST_AUTO_TEST_CASE(frames_below_a_pixel_are_runs_when_the_tree_is_embedded) {
  std::string profile;
  for (int i = 0; i < 3000; ++i)
    profile += fmt::format("main;f{};g{} 1\n", i % 2000, i);
  const auto merged = flamesvg({}, profile);
  BOOST_TEST(rects_of(merged.out).size() == 2U);
  BOOST_TEST(contains(merged.out, "<path fill=\"#"));
  BOOST_TEST(contains(merged.out, "<metadata class=\"tree\">"));
  const auto single = flamesvg({"--embed", "none"}, profile);
  BOOST_TEST(rects_of(single.out).size() == 5002U);
  BOOST_TEST(!contains(single.out, "<path"));
  BOOST_TEST(!contains(single.out, "<metadata"));
}

BOOST_AUTO_TEST_CASE(the_embedded_tree_takes_no_more_than_was_allowed) {
  const std::string profile = random_profile();
  for (const char* limit : {"2K", "10K", "30000"}) {
    const std::string out = flamesvg({"--width", "100", "--embed", limit}, profile).out;
    std::string_view page = out;
    const std::string tree = pe::testing::take_between(page, "<metadata class=\"tree\">", "<");
    BOOST_TEST(tree.size() <= (limit[0] == '2' ? 2048U : limit[0] == '1' ? 10'240U : 30'000U));
    BOOST_TEST(contains(out, " samples are not in this file.</desc>"));
  }
}

BOOST_AUTO_TEST_CASE(the_description_names_the_largest_functions) {
  const auto r = flamesvg({"--countname", "ms"}, "main;f;f 10\nmain;<g>_[k] 25\nmain 5\n");
  BOOST_TEST(contains(r.out,
                      "40 ms in 3 stacks, 4 frames. Largest self: &lt;g&gt; 62.50%, f 25.00%, main "
                      "12.50%. Largest total: main 100.00%, &lt;g&gt; 62.50%, f 25.00%.</desc>"));
}

BOOST_AUTO_TEST_CASE(facts_are_in_the_page_and_the_command_is_its_title) {
  constexpr const char* kText = "# command: make -j8 <all>\n# host: a\na 1\n";
  const auto run = flamesvg({}, kText);
  BOOST_TEST(contains(
      run.out, "<metadata class=\"facts\">command: make -j8 &lt;all&gt;\nhost: a\n</metadata>"));
  BOOST_TEST(contains(run.out, "<title id=\"page-title\">make -j8 &lt;all&gt;</title>"));
  const auto titled = flamesvg({"--title", "mine"}, kText);
  BOOST_TEST(contains(titled.out, "<title id=\"page-title\">mine</title>"));
  BOOST_TEST(!contains(flamesvg({"--compat"}, kText).out, "class=\"facts\""));
}

BOOST_AUTO_TEST_CASE(theme_and_width_are_chosen) {
  constexpr const char* kDark = "color-scheme: dark;";
  constexpr const char* kPreference = "@media (prefers-color-scheme: dark)";
  const auto by_preference = flamesvg({}, "a 1\n").out;
  BOOST_TEST(contains(by_preference, kPreference));
  const auto dark = flamesvg({"--dark"}, "a 1\n").out;
  BOOST_TEST(!contains(dark, kPreference));
  BOOST_TEST(contains(dark, kDark));
  BOOST_TEST(contains(by_preference, "height=\"100%\" fill=\"#fff\"/>"));
  BOOST_TEST(!contains(by_preference, "<linearGradient"));
  const auto light = flamesvg({"--bgcolors", "blue"}, "a 1\n").out;
  BOOST_TEST(contains(light, "<linearGradient id=\"background\""));
  BOOST_TEST(!contains(light, kDark));
  BOOST_TEST(contains(flamesvg({"--dark", "--bgcolors", "blue"}, "a 1\n").out, kDark));
  for (const std::vector<std::string>& args : {std::vector<std::string>(), {"--width", "auto"}})
    BOOST_TEST(contains(flamesvg(args, "a 1\n").out,
                        " width=\"100%\" preserveAspectRatio=\"xMidYMin meet\" height=\"106\" "
                        "viewBox=\"0 0 1200 106\""));
  BOOST_TEST(contains(flamesvg({"--width", "800"}, "a 1\n").out, " width=\"800\" height=\"106\""));
}

BOOST_AUTO_TEST_CASE(marks_choose_the_colour_and_are_not_shown) {
  const auto r = flamesvg({"--colors", "kind"}, "main;read_[l];vfs_read_[k] 1\n");
  BOOST_TEST(contains(r.out, "<title>vfs_read (1 samples"));
  BOOST_TEST(!contains(r.out, "_[k]<"));
  BOOST_TEST(contains(r.out, ">kernel</tspan>"));
  BOOST_TEST(!contains(flamesvg({}, "main 1\n").out, "id=\"legend\""));
}

BOOST_AUTO_TEST_CASE(the_legend_names_the_runtimes) {
  const std::string facts = "# runtimes: Java, Python\n# compiled: Java\n";
  const auto r = flamesvg({}, facts + "main;f_[s];a.b_[s];a.c_[j];vfs_read_[k] 100\n");
  for (const char* meaning : {">script (Java, Python)<", ">JIT (Java)<", ">kernel<"})
    BOOST_TEST(contains(r.out, meaning), meaning);
  // The stream does not name the runtimes of perf maps.
  BOOST_TEST(contains(flamesvg({}, "# runtimes: PHP\nf_[s];g_[j] 100\n").out, ">JIT<"));
}

BOOST_AUTO_TEST_CASE(the_legend_lists_the_kinds_of_code_that_occur) {
  const auto r = flamesvg({"--colors", "kind"}, "main;read_[l];vfs_read_[k] 100\n");
  for (const char* meaning : {">program<", ">library<", ">kernel<"})
    BOOST_TEST(contains(r.out, meaning), meaning);
  for (const char* meaning : {">inlined<", ">JIT<", ">unresolved<"})
    BOOST_TEST(!contains(r.out, meaning), meaning);
  const auto differences = flamesvg({}, "a;b 10 20\nc 10 10\n");
  BOOST_TEST(contains(differences.out, ">grew<"));
  BOOST_TEST(contains(differences.out, ">as before<"));
  BOOST_TEST(!contains(differences.out, ">shrank<"));
  BOOST_TEST(contains(flamesvg({"--negate"}, "a;b 10 20\nc 10 10\n").out, ">shrank<"));
}

BOOST_AUTO_TEST_CASE(marks_in_the_input_choose_the_palette_if_the_user_does_not) {
  const std::string marked = "main;read_[k] 100\n";
  BOOST_TEST((flamesvg({}, marked).out == flamesvg({"--colors", "kind"}, marked).out));
  const std::string plain = "main;read;[unknown] 100\n";
  BOOST_TEST((flamesvg({}, plain).out == flamesvg({"--colors", "warm"}, plain).out));
  BOOST_TEST(!contains(flamesvg({"--colors", "hot"}, marked).out, "id=\"legend\""));
  BOOST_TEST(!contains(flamesvg({"--compat"}, marked).out, "id=\"legend\""));
}

BOOST_AUTO_TEST_CASE(unresolved_frames_are_grey) {
  for (const char* palette : {"kind", "warm", "mem"}) {
    const auto r = flamesvg({"--colors", palette}, "[unknown] 100\n");
    std::string_view page = r.out;
    pe::testing::take_between(page, "<title>[unknown]", "fill=");
    const std::string fill = pe::testing::take_between(page, "fill=\"rgb(", ")");
    const auto first = fill.find(',');
    const auto second = fill.find(',', first + 1);
    const int red = std::stoi(fill);
    BOOST_TEST(red == std::stoi(fill.substr(first + 1)), palette << ": " << fill);
    BOOST_TEST(std::abs(red - std::stoi(fill.substr(second + 1))) <= 3, palette << ": " << fill);
  }
}

BOOST_AUTO_TEST_CASE(a_function_that_returned_by_a_tail_call_has_a_dashed_edge) {
  const auto r = flamesvg({}, "main;f_[t];g 3\nmain;h 1\n");
  BOOST_TEST(r.out.find("<title>f (3 samples, 75.00%; returned by a tail call)</title>") !=
             std::string::npos);
  BOOST_TEST(r.out.find("<g class=\"tail\"") != std::string::npos);
  BOOST_TEST(r.out.find("<g class=\"tail\"") == r.out.rfind("<g class=\"tail\""));
}

BOOST_AUTO_TEST_CASE(recursion_is_folded_on_request) {
  const auto r = flamesvg({"--fold-recursion"}, "main;f;f;f;g 300\nmain;f 100\n");
  BOOST_TEST(drawn(r.out) ==
             "all (400 samples, 100%) at 10.0 wide 1180.0\n"
             "main (400 samples, 100.00%) at 10.0 wide 1180.0\n"
             "f (400 samples, 100.00%; recursion \u00d73) at 10.0 wide 1180.0\n"
             "g (300 samples, 75.00%) at 305.0 wide 885.0\n");
  BOOST_TEST(contains(r.out, ">f \u00d73 \u00b7 100.0%</text>"));
  BOOST_TEST(flamesvg({"--fold-recursion", "--flamechart"}, "a 1\n").status == 2);
}

BOOST_AUTO_TEST_CASE(the_page_can_be_an_html_document) {
  auto html = flamesvg({"--html", "--title", "a<b"}, "main;f 100\n").out;
  BOOST_TEST(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\""));
  BOOST_TEST(contains(html, "<meta charset=\"UTF-8\"/><title>a&lt;b</title>"));
  BOOST_TEST(html.ends_with("</svg>\n</body></html>\n"));
  const std::string alone = " data-alone=\"\"";
  BOOST_REQUIRE(contains(html, alone));
  html.erase(html.find(alone), alone.size());
  const auto svg = flamesvg({"--title", "a<b"}, "main;f 100\n").out;
  BOOST_TEST(html.substr(html.find("<svg"), html.find("</body>") - html.find("<svg")) ==
             svg.substr(svg.find("<svg")));
  const auto empty = flamesvg({"--html"}, "").out;
  BOOST_TEST(empty.starts_with("<!DOCTYPE html>\n"));
  BOOST_TEST(empty.ends_with("</svg>\n</body></html>\n"));
}

BOOST_AUTO_TEST_CASE(inverted_and_reversed) {
  BOOST_TEST((flamesvg({"--icicle"}, "a 100\n").out == flamesvg({"--inverted"}, "a 100\n").out));
  const auto r = flamesvg({"--inverted", "--reverse"}, "a;b 1\nc;b 3\n");
  BOOST_TEST(contains(r.out, ">Icicle Graph</text>"));
  const auto rects = rects_of(r.out);
  BOOST_REQUIRE(rects.size() == 4U);
  BOOST_TEST(rects[1].title == "b (4 samples, 100.00%)");
  BOOST_TEST(rects[0].y < rects[1].y);
  BOOST_TEST(rects[2].title == "a (1 samples, 25.00%)");
}

BOOST_AUTO_TEST_CASE(names_that_xml_cannot_hold_are_repaired_and_counted) {
  const auto r = flamesvg({}, "a\x01\xff;b 100\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "flamesvg: replaced 2 characters that XML does not allow\n");
}

BOOST_AUTO_TEST_CASE(frames_lie_within_their_parents_and_do_not_overlap) {
  for (const char* width : {"1200", "333.3"}) {
    const auto rects =
        rects_of(flamesvg({"--width", width, "--embed", "none"}, random_profile()).out);
    BOOST_REQUIRE(rects.size() > 100U);
    constexpr double kSlack = 0.001;  // coordinates have tenths of a pixel, read as doubles
    std::vector<Rect> open;
    std::vector<double> row_ends(100, 0);
    for (const Rect& r : rects) {
      BOOST_REQUIRE(r.depth <= static_cast<int>(open.size()));
      open.resize(static_cast<std::size_t>(r.depth));
      if (!open.empty()) {
        BOOST_TEST_REQUIRE(r.x >= open.back().x - kSlack);
        BOOST_TEST_REQUIRE(r.x + r.width <= open.back().x + open.back().width + kSlack);
      }
      double& row_end = row_ends[static_cast<std::size_t>(r.depth)];
      BOOST_TEST_REQUIRE(r.x >= row_end - kSlack);
      row_end = r.x + r.width;
      open.push_back(r);
    }
  }
}

BOOST_AUTO_TEST_CASE(counts_beyond_64_bits_are_told_and_drawn_inside_the_page) {
  const auto r = flamesvg({}, "a 18446744073709551615\nb 18446744073709551615\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "flamesvg: the counts overflow 64 bits: widths are wrong\n");
  for (const Rect& rect : rects_of(r.out))
    BOOST_TEST(rect.x + rect.width <= 1190.01);
}

BOOST_AUTO_TEST_CASE(a_stack_of_100000_frames_is_drawn, *pe::tests::costly()) {
  std::string stack = "f";
  for (int i = 1; i < 100'000; ++i)
    stack += ";f";
  const auto r = flamesvg({"--embed", "none"}, stack + " 1\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(rects_of(r.out).size() == 100'001U);
  BOOST_TEST(!contains(r.out, "<g class=\"deeper\""));
}

BOOST_AUTO_TEST_CASE(the_file_draws_four_screens_of_what_its_tree_has) {
  std::string stack = "f0";
  for (int i = 1; i < 5000; ++i)
    stack += ";f" + std::to_string(i);
  const std::string profile = stack + " 100\nf0;z 100\n";
  const auto r = flamesvg({}, profile);
  const auto rects = rects_of(r.out);
  BOOST_REQUIRE(rects.size() == 176U + 1);  // 3,200 pixels; one row is the tower
  for (const Rect& rect : rects)
    BOOST_TEST_REQUIRE(rect.depth < 177);
  BOOST_TEST(contains(r.out, "data-levels=\"177\""));
  BOOST_TEST(contains(r.out, "<g class=\"deeper\"><title>+4,824 deeper: open this file"));
  BOOST_TEST(contains(r.out, ">+4,824 deeper</text></g>\n"));
  BOOST_TEST(contains(r.out,
                      "4,824 of 5,001 levels are not drawn; open this file in a browser to "
                      "see all. 200 samples in 2 stacks"));
  BOOST_TEST(contains(r.out, ">4,824 of 5,001 levels are not drawn: open this file"));
  for (const std::vector<std::string>& all :
       {std::vector<std::string>{"--embed", "none"}, {"--compat"}, {"--max-depth", "170"}})
    BOOST_TEST(!contains(flamesvg(all, profile).out, "<g class=\"deeper\""));
  const auto icicle = flamesvg({"--inverted"}, profile);
  BOOST_TEST(rects_of(icicle.out).front().y < rects_of(icicle.out).back().y);
  BOOST_TEST(contains(icicle.out, ">+4,824 deeper</text></g>\n"));
}

BOOST_AUTO_TEST_CASE(shares_of_durations_are_shares_of_all_time) {
  for (const char* unit : {"ns", "us", "ms", "s"}) {
    const auto r = flamesvg({"--countname", unit}, "a 100\n");
    BOOST_TEST(contains(r.out, "its share of all time. "));
    BOOST_TEST(contains(r.out, ">Width is the share of all time; the x-axis is not time.<"));
  }
  BOOST_TEST(contains(flamesvg({"--countname", "bytes"}, "a 100\n").out, "share of all bytes; "));
  BOOST_TEST(
      contains(flamesvg({"--compat", "--countname", "us"}, "a 100\n").out, "share of all us; "));
}

BOOST_AUTO_TEST_CASE(a_long_title_is_cut_where_it_is_drawn) {
  const std::string title(300, 't');
  const auto r = flamesvg({"--title", title}, "a 100\n");
  BOOST_TEST(contains(r.out, "<title id=\"page-title\">" + title + "</title>"));
  BOOST_TEST(contains(r.out, "ttt\u2026</text>"));
  BOOST_TEST(!contains(r.out, ">" + title + "</text>"));
  BOOST_TEST(contains(flamesvg({"--title", "short"}, "a 100\n").out, ">short</text>"));
  BOOST_TEST(
      contains(flamesvg({"--compat", "--title", title}, "a 100\n").out, ">" + title + "</text>"));
}

BOOST_AUTO_TEST_CASE(options_are_checked) {
  const auto refused = [](const std::vector<std::string>& args, const std::string& message) {
    const auto r = flamesvg(args, "a 1\n");
    BOOST_TEST(r.status == 2);
    BOOST_TEST(r.out.empty());
    BOOST_TEST(r.err == "flamesvg: " + message + " (see --help)\n");
  };
  refused({"--width", "-1"}, "--width: not a number from 21 to 1000000: '-1'");
  refused({"--width", "1e5"}, "--width: not a number from 21 to 1000000: '1e5'");
  refused({"--fontsize", "nan"}, "--fontsize: not a number from 1 to 1000: 'nan'");
  refused({"--minwidth", "101%"}, "--minwidth: neither pixels nor a percentage: '101%'");
  refused({"--embed", "3G"}, "--embed: not a size such as 3M, all or none: '3G'");
  refused({"--embed", "99999999999999M"},
          "--embed: not a size such as 3M, all or none: '99999999999999M'");
  refused({"--total", "x"}, "--total: not a count: 'x'");
  refused({"--bgcolors", "url(x)"},
          "--bgcolors: not one of yellow, blue, green, grey, #rrggbb: 'url(x)'");
  refused({"--colors", "neon"},
          "--colors: not one of hot, mem, io, wakeup, chain, java, js, perl, red, green, blue, "
          "aqua, yellow, purple, orange, kind, colorblind, hotcold, warm: 'neon'");
}

BOOST_AUTO_TEST_CASE(wide_boxes_show_their_shares_without_the_script) {
  const std::string folded = "main;wide 900\nmain;a_name_that_only_just_fits 99\nmain;x 1\n";
  const std::string page = flamesvg({"--width", "900"}, folded).out;
  BOOST_TEST(contains(page, ">main \u00b7 100.0%</text>"));
  BOOST_TEST(contains(page, ">wide \u00b7 90.0%</text>"));
  BOOST_TEST(contains(page, ">a_name_tha..</text>"));
  BOOST_TEST(contains(page, ">all</text>"));
  BOOST_TEST(!contains(flamesvg({"--compat"}, folded).out, "\u00b7"));
}

BOOST_AUTO_TEST_SUITE_END()
