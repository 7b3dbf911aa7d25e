// The options of flamesvg that change the graph, and the files that they read.
// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>
#include <boost/program_options/options_description.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "flamesvg/name_attributes.h"
#include "flamesvg/options.h"
#include "flamesvg/palette_map.h"
#include "support/flamesvg.h"
#include "support/svg_frames.h"
#include "support/temp_dir.h"

using pe::testing::contains;
using pe::testing::drawn;
using pe::testing::flamesvg;
using pe::testing::rects_of;

BOOST_AUTO_TEST_SUITE(flamesvg_options)

namespace {

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The current folder is a new one while the object lives; palette.map is there.
class InTempDir {
 public:
  InTempDir() : old_(std::filesystem::current_path()) { std::filesystem::current_path(dir_ / ""); }
  InTempDir(const InTempDir&) = delete;
  InTempDir& operator=(const InTempDir&) = delete;
  InTempDir(InTempDir&&) = delete;
  InTempDir& operator=(InTempDir&&) = delete;
  ~InTempDir() { std::filesystem::current_path(old_); }

 private:
  pe::testing::TempDir dir_;
  std::filesystem::path old_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(two_counts_are_drawn_as_differences_of_each_frame_with_all_above_it) {
  const auto r = flamesvg({}, "a;b 100 200\na;c 50 10\nd 30 30\n");
  BOOST_TEST(r.err.empty());
  BOOST_TEST(drawn(r.out) ==
             "all (240 samples, 100%; +25.00%) at 10.0 wide 1180.0\n"
             "a (210 samples, 87.50%; +25.00%) at 10.0 wide 1032.5\n"
             "b (200 samples, 83.33%; +41.67%) at 10.0 wide 983.3\n"
             "c (10 samples, 4.17%; -16.67%) at 993.3 wide 49.2\n"
             "d (30 samples, 12.50%; 0.00%) at 1042.5 wide 147.5\n");
  BOOST_TEST(contains(r.out, "fill=\"rgb(255,0,0)\""));      // b, the largest
  BOOST_TEST(contains(r.out, "fill=\"rgb(126,126,255)\""));  // c
  BOOST_TEST(contains(r.out, "fill=\"rgb(236,236,236)\""));  // d
  BOOST_TEST(contains(r.out, ">shrank</tspan>"));
}

BOOST_AUTO_TEST_CASE(a_tree_without_what_is_drawn_is_left_out_and_told) {
  std::string profile;
  for (int i = 0; i < 500; ++i)
    profile += "main;function_" + std::to_string(i * 7919) + " " + std::to_string(i + 1000) + "\n";
  const auto r = flamesvg({"--embed", "100"}, profile);
  BOOST_TEST(r.err ==
             "flamesvg: --embed: too small for the frames that are drawn: the page has no tree to "
             "zoom into\n");
  BOOST_TEST(!contains(r.out, "<metadata"));
  BOOST_TEST(rects_of(r.out).size() == 502U);
  BOOST_TEST(contains(flamesvg({}, profile).out, "<metadata"));
}

BOOST_AUTO_TEST_CASE(the_summary_of_a_reversed_picture_names_what_ran) {
  const auto r = flamesvg({"--reverse"}, "main;a;hot 300\nmain;b;hot 100\nmain 100\n");
  BOOST_TEST(contains(r.out, "Largest self: hot 80.00%, main 20.00%."));
}

BOOST_AUTO_TEST_CASE(waiting_is_cold_and_the_rest_hot) {
  const auto r = flamesvg({"--colors", "hotcold"}, "work 100\nsleep_[o] 100\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.out, "<title>sleep (100 samples, 50.00%)"));
  for (const char* meaning : {"on CPU", "waiting"})
    BOOST_TEST(contains(r.out, meaning));
}

BOOST_AUTO_TEST_CASE(the_perl_shows_the_marks_of_libraries_and_of_waiting) {
  BOOST_TEST(contains(flamesvg({"--compat"}, "read_[o] 100\n").out, "<title>read_[o] (100"));
  BOOST_TEST(contains(flamesvg({"--compat"}, "read_[l] 100\n").out, "<title>read_[l] (100"));
  BOOST_TEST(contains(flamesvg({}, "read_[l] 100\n").out, "<title>read (100"));
}

BOOST_AUTO_TEST_CASE(negate_turns_differences_round) {
  const auto r = flamesvg({"--negate"}, "a 100 200\nb 50 10\n");
  BOOST_TEST(contains(r.out, "a (200 samples, 95.24%; -47.62%)"));
  BOOST_TEST(contains(r.out, "fill=\"rgb(0,0,255)\""));
}

BOOST_AUTO_TEST_CASE(a_frame_that_ends_in_a_number_is_no_first_count_where_other_lines_have_one) {
  const auto r = flamesvg({}, "main;line 12 100\nmain 300\n");
  BOOST_TEST(contains(r.out, "line 12 (100 samples, 25.00%)"));
}

BOOST_AUTO_TEST_CASE(a_flame_chart_keeps_the_order_and_the_places_of_its_input) {
  const auto r = flamesvg({"--flamechart"}, "b 100\na;x 50\na 50\na;y 100\nb 100\n");
  BOOST_TEST(contains(r.out, ">Flame Chart</text>"));
  BOOST_TEST(drawn(r.out) ==
             "all (400 samples, 100%) at 10.0 wide 1180.0\n"
             "b (100 samples, 25.00%) at 10.0 wide 295.0\n"
             "a (200 samples, 50.00%) at 305.0 wide 590.0\n"
             "x (50 samples, 12.50%) at 305.0 wide 147.5\n"
             "y (100 samples, 25.00%) at 600.0 wide 295.0\n"
             "b (100 samples, 25.00%) at 895.0 wide 295.0\n");
}

BOOST_AUTO_TEST_CASE(frames_may_be_sorted_by_width) {
  const auto r = flamesvg({"--sort", "width"}, "a 100\nb 300\n");
  BOOST_TEST(drawn(r.out) ==
             "all (400 samples, 100%) at 10.0 wide 1180.0\n"
             "b (300 samples, 75.00%) at 10.0 wide 885.0\n"
             "a (100 samples, 25.00%) at 895.0 wide 295.0\n");
}

BOOST_AUTO_TEST_CASE(what_is_deeper_than_asked_for_is_one_frame_that_says_how_many) {
  const auto rects = rects_of(flamesvg({"--max-depth", "1"}, "a;b;c 100\na;d 300\n").out);
  BOOST_REQUIRE(rects.size() == 3U);
  BOOST_TEST(rects[2].title == "[3 deeper frames] (400 samples, 100.00%)");
}

BOOST_AUTO_TEST_CASE(lost_samples_are_a_grey_frame_of_the_total) {
  const auto r = flamesvg({"--lost", "100"}, "a 300\n");
  BOOST_TEST(contains(r.out, "[lost] (100 samples, 25.00%)"));
  BOOST_TEST(contains(r.out, "fill=\"rgb(170,170,170)\""));
}

BOOST_AUTO_TEST_CASE(wakers_are_marked_and_coloured) {
  const auto r = flamesvg({"--colors", "chain"}, "a;--;b;c 100\nd 100\n");
  BOOST_TEST(drawn(r.out) ==
             "all (200 samples, 100%) at 10.0 wide 1180.0\n"
             "a (100 samples, 50.00%) at 10.0 wide 590.0\n"
             "-- (100 samples, 50.00%) at 10.0 wide 590.0\n"
             "b (100 samples, 50.00%) at 10.0 wide 590.0\n"
             "c (100 samples, 50.00%) at 10.0 wide 590.0\n"
             "d (100 samples, 50.00%) at 600.0 wide 590.0\n"
             "-- (100 samples, 50.00%) at 600.0 wide 590.0\n");
}

BOOST_AUTO_TEST_CASE(colours_by_chance_are_the_same_for_the_same_seed) {
  const auto with = [](const char* seed) { return flamesvg({"--seed", seed}, "a;b 100\n").out; };
  BOOST_TEST((with("1") == with("1")));
  BOOST_TEST((with("1") != with("2")));
}

BOOST_AUTO_TEST_CASE(few_samples_are_told) {
  BOOST_TEST(flamesvg({"-q"}, "a 99.5\n").err == "");
  BOOST_TEST(flamesvg({}, "a 99.5\n").err ==
             "flamesvg: only 99.5 samples: percentages are unreliable\n");
  BOOST_TEST(flamesvg({}, "a 1\n").err == "flamesvg: only 1 sample: percentages are unreliable\n");
  BOOST_TEST(flamesvg({"--countname", "us"}, "a 1\n").err ==
             "flamesvg: only 1 us: percentages are unreliable\n");
  BOOST_TEST(flamesvg({}, "a 100\n").err.empty());
}

BOOST_AUTO_TEST_CASE(notes_are_a_comment_that_stays_one) {
  const auto r = flamesvg({"--notes", "a--b---c"}, "a 100\n");
  BOOST_TEST(contains(r.out, "<!-- NOTES: a- -b- - -c -->"));
  BOOST_TEST(flamesvg({"--notes", "<x"}, "a 100\n").status == 2);
}

BOOST_AUTO_TEST_CASE(notes_are_written_as_typed) {  // XML knows no references in a comment
  const auto r = flamesvg({"--notes", "a & \"b\"\n'c'\x1b"}, "a 100\n");
  BOOST_TEST(contains(r.out, "<!-- NOTES: a & \"b\"\n'c'\xEF\xBF\xBD -->"));
  BOOST_TEST(contains(flamesvg({"--notes", "a & \xc3\xa9", "--encoding", "latin1"}, "a 100\n").out,
                      "<!-- NOTES: a & &#233; -->"));
}

BOOST_AUTO_TEST_CASE(any_encoding_but_utf_8_is_written_in_ascii) {
  const auto r =
      flamesvg({"--encoding", "iso-8859-1", "--title", "\xc3\xa9"}, "\xe6\x97\xa5 100\n");
  BOOST_TEST(contains(r.out, "encoding=\"ISO-8859-1\""));
  BOOST_TEST(contains(r.out, "<title>&#26085; (100 samples"));
  BOOST_TEST(contains(r.out, ">&#233;</text>"));
  BOOST_TEST(r.out.find_first_of("\xc3\xe6") == std::string::npos);
  for (const char* name : {"utf-16", "UTF16", "UTF-7", "IBM037", "x\"y", ""})
    BOOST_TEST(flamesvg({"--encoding", name}, "a 1\n").status == 2, name);
}

BOOST_AUTO_TEST_CASE(colours_are_kept_from_picture_to_picture) {
  const InTempDir here;
  std::ofstream("palette.map") << "b->rgb(1,2,3)\ngone->rgb(4,5,6)\nevil->\"/><script>\n";
  const auto first = flamesvg({"--cp"}, "a;b 100\n");
  BOOST_TEST(first.err ==
             "flamesvg: palette.map: dropped 1 line without a colour \"rgb(R,G,B)\"\n");
  BOOST_TEST(contains(first.out, "fill=\"rgb(1,2,3)\""));
  BOOST_TEST(content("palette.map") ==
             "->rgb(222,214,196)\na->rgb(243,185,116)\nb->rgb(1,2,3)\ngone->rgb(4,5,6)\n");
  BOOST_TEST((flamesvg({"--cp", "--colors", "io"}, "a;b 100\n").out.find("rgb(243,185,116)") !=
              std::string::npos));
}

BOOST_AUTO_TEST_CASE(separators_are_neither_taken_from_a_palette_map_nor_added) {
  const InTempDir here;
  std::ofstream("palette.map") << "-->rgb(1,2,3)\n";
  const auto r = flamesvg({"--cp"}, "a;--;b;- 100\n");
  BOOST_TEST(contains(r.out, "rgb(160,160,160)"));
  BOOST_TEST(contains(r.out, "rgb(200,200,200)"));
  BOOST_TEST(content("palette.map") ==
             "->rgb(222,214,196)\n-->rgb(1,2,3)\na->rgb(243,185,116)\nb->rgb(241,174,111)\n");
}

BOOST_AUTO_TEST_CASE(sizes_fonts_and_grounds_stay_those_of_the_script_for_the_perl) {
  const auto r = flamesvg({"--compat"}, "a 100\n");
  BOOST_TEST(contains(r.out, " width=\"1200\" height=\"102\" viewBox=\"0 0 1200 102\" "));
  BOOST_TEST(contains(r.out, "font-family=\"Verdana, &quot;DejaVu Sans&quot;, sans-serif\""));
  BOOST_TEST(contains(r.out, "stop-color=\"rgb(238,238,176)\""));
  BOOST_TEST(contains(r.out, "data-row=\"16\""));
  BOOST_TEST(contains(r.out, "fill=\"rgb(236,146,35)\""));
}

BOOST_AUTO_TEST_CASE(an_unknown_palette_is_black_on_the_usual_ground_for_the_perl) {
  const auto r = flamesvg({"--compat", "--colors", "neon"}, "a 100\n");
  BOOST_TEST(contains(r.out, "fill=\"rgb(0,0,0)\""));
  BOOST_TEST(contains(r.out, "stop-color=\"rgb(238,238,176)\""));
}

BOOST_AUTO_TEST_CASE(texts_are_escaped_already_for_the_perl) {
  const std::vector<std::string> args = {"--title=a &lt;b&gt; &amp;amp; & &x;",
                                         "--subtitle=it&#39;s", "--countname=&quot;C&quot;"};
  std::vector<std::string> compat = args;
  compat.emplace_back("--compat");
  const auto r = flamesvg(compat, "a 100\n");
  BOOST_TEST(contains(r.out, ">a &lt;b&gt; &amp;amp; &amp; &amp;x;</text>"));
  BOOST_TEST(contains(r.out, ">it&#39;s</text>"));
  BOOST_TEST(contains(r.out, "a (100 &quot;C&quot;, 100.00%)"));
  BOOST_TEST(contains(flamesvg(args, "a 100\n").out, ">a &amp;lt;b&amp;gt; &amp;amp;amp;"));
}

BOOST_AUTO_TEST_CASE(for_the_perl_shades_by_hash_are_never_by_chance) {
  const auto by_hash = flamesvg({"--compat", "--hash"}, "a 100\n");
  BOOST_TEST(flamesvg({"--compat", "--hash", "--random"}, "a 100\n").out == by_hash.out);
}

BOOST_AUTO_TEST_CASE(shares_of_no_counts_are_refused) {  // the perl script divides by zero
  const auto r = flamesvg({"--compat", "--factor", "0"}, "a 100\n");
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.err == "flamesvg: --factor: not a number above 0: '0' (see --help)\n");
}

BOOST_AUTO_TEST_CASE(differences_below_one_are_pale_for_the_perl) {
  BOOST_TEST(contains(flamesvg({"--compat"}, "a 99.5 100\n").out, "rgb(255,105,105)"));
  BOOST_TEST(contains(flamesvg({}, "a 99.5 100\n").out, "rgb(255,0,0)"));
}

BOOST_AUTO_TEST_CASE(a_palette_map_that_is_a_link_is_replaced_and_its_target_left_alone) {
  const InTempDir here;
  std::ofstream("target") << "b->rgb(1,2,3)\n";
  BOOST_REQUIRE(::symlink("target", "palette.map") == 0);
  BOOST_TEST(flamesvg({"--cp"}, "a 100\n").status == 0);
  BOOST_TEST(content("target") == "b->rgb(1,2,3)\n");
  BOOST_TEST(contains(content("palette.map"), "a->rgb("));
}

BOOST_AUTO_TEST_CASE(rgb_is_three_numbers_and_nothing_else) {
  using pe::flamesvg::parse_rgb;
  BOOST_TEST((parse_rgb("rgb(0,128,255)") == pe::painting::Rgb{0, 128, 255}));
  BOOST_TEST((parse_rgb("rgb( 0, 128,255 )") == pe::painting::Rgb{0, 128, 255}));
  for (const char* text : {"rgb(0,0,256)", "rgb(0,0)", "rgb(0,0,0,0)", "rgb(,,)", "rgb(1,2,3",
                           "red", "rgb(1 2,3,4)", "rgb(-1,2,3)", "rgb( ,,)", ""})
    BOOST_TEST(!parse_rgb(text), text);
}

BOOST_AUTO_TEST_CASE(functions_get_the_attributes_of_a_file) {
  const pe::testing::TempDir dir;
  const std::string file = dir.file("attr",
                                    "foo_[k]\ttitle=T & x\thref=https://x/?a=1&b=2\tid=i1\tclass=c1"
                                    "\tg_extra=data-x=\"1\"\ta_extra=rel='nofollow'\n"
                                    "bar\tclass=only\n");
  const auto r = flamesvg({"--nameattr", file}, "foo_[k];bar 100\n");
  BOOST_TEST(r.err.empty());
  BOOST_TEST(contains(r.out,
                      "<a href=\"https://x/?a=1&amp;b=2\" rel=\"nofollow\" target=\"_top\"><g "
                      "id=\"i1\" data-x=\"1\" class=\"c1\" data-at="));
  BOOST_TEST(contains(r.out, " data-name=\"foo\"><title>T &amp; x</title><rect"));
  BOOST_TEST(contains(
      r.out, "<g class=\"only\" data-at=\"0 100 2\"><title>bar (100 samples, 100.00%)</title>"));
  BOOST_TEST(contains(r.out, "</g></a>\n"));
}

BOOST_AUTO_TEST_CASE(attributes_that_could_run_script_are_refused_and_told) {
  const pe::testing::TempDir dir;
  const std::string file = dir.file("attr",
                                    "a\thref=javascript:alert(1)\n"
                                    "a\tg_extra=onclick=\"alert(1)\"\tonload=x\n"
                                    "a\ta_extra=xlink:href=\"data:text/html,x\"\n");
  const auto r = flamesvg({"--nameattr", file}, "a 100\n");
  BOOST_TEST(r.err == "flamesvg: --nameattr: ignored 4 fields; first: " + file +
                          ":1: 'href=javascript:alert(1)'\n");
  BOOST_TEST(!contains(r.out, "alert"));
  BOOST_TEST(!contains(r.out, "data:text"));
}

BOOST_AUTO_TEST_CASE(attributes_that_would_break_the_page_are_refused_and_told) {
  const pe::testing::TempDir dir;
  const std::string file = dir.file("attr", "a\tg_extra=x:y=\"1\"\tid=title\tg_extra=id='bar'\n");
  const auto r = flamesvg({"--nameattr", file}, "a 100\n");
  BOOST_TEST(contains(r.err, "ignored 3 fields"));
  BOOST_TEST(!contains(r.out, "x:y"));
}

BOOST_AUTO_TEST_CASE(a_palette_map_that_is_no_file_is_an_error) {
  const InTempDir here;
  BOOST_REQUIRE(::mkfifo("palette.map", 0600) == 0);
  const auto r = flamesvg({"--cp"}, "a 100\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "flamesvg: palette.map: not a regular file\n");
}

BOOST_AUTO_TEST_CASE(only_the_perl_draws_palettes_that_it_does_not_know) {
  const auto r = flamesvg({"--compat", "--colors", "nosuch"}, "a 100\n");
  BOOST_TEST(contains(r.out, "fill=\"rgb(0,0,0)\""));
  for (const char* option : {"--colors", "--color"})
    BOOST_TEST(flamesvg({option, "nosuch"}, "a 100\n").status == 2);
}

BOOST_AUTO_TEST_CASE(addresses_are_safe_if_they_run_nothing) {
  using pe::flamesvg::is_safe_address;
  for (const char* address : {"http://x", "HTTPS://x", "x/y:z", "#a", "?q=a:b", "", "mailto:a@b"})
    BOOST_TEST(is_safe_address(address), address);
  for (const char* address : {"javascript:x", " javascript:x", "JavaScript:x", "java\tscript:x",
                              "data:text/html,x", "vbscript:x", ":x", "\x01javascript:x"})
    BOOST_TEST(!is_safe_address(address), address);
}

BOOST_AUTO_TEST_CASE(options_that_contradict_are_refused) {
  BOOST_TEST(flamesvg({"--sort", "width", "--flamechart"}, "a 1\n").status == 2);
  BOOST_TEST(flamesvg({"--sort", "size"}, "a 1\n").err ==
             "flamesvg: --sort: not one of name, width: 'size' (see --help)\n");
  BOOST_TEST(flamesvg({"--max-depth", "0"}, "a 1\n").status == 2);
  BOOST_TEST(flamesvg({"--lost", "-1"}, "a 1\n").status == 2);
  BOOST_TEST(flamesvg({"--seed", "x"}, "a 1\n").status == 2);
}

BOOST_AUTO_TEST_CASE(every_option_of_the_script_is_one_of_ours) {
  boost::program_options::options_description ours;
  pe::flamesvg::add_options(ours);
  pe::flamesvg::add_compatible_options(ours);
  for (const auto& script : pe::flamesvg::kPerlNames)
    for (const auto& option : script.options)
      BOOST_TEST((option.takes == pe::Takes::kUsage ||
                  ours.find_nothrow(std::string(our_name(option)), false) != nullptr),
                 option.name);
}

BOOST_AUTO_TEST_SUITE_END()
