// SPDX-License-Identifier: MIT
#include "painting/svg/page.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/string_output.h"

using namespace pe::painting;

namespace {

std::string frame_text(const PageStyle& style, const Frame& frame) {
  pe::StringOutput out;
  PageWriter(style, out).frame(frame);
  return out.text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(page)

BOOST_AUTO_TEST_CASE(labels_are_cut_to_fit) {
  const Geometry g;  // a letter is 7.08 pixels wide
  BOOST_TEST(fitted_label("function", 8 * 7.08 + 0.1, g) == "function");
  BOOST_TEST(fitted_label("function", 7 * 7.08 + 0.1, g) == "funct..");
  BOOST_TEST(fitted_label("function", 3 * 7.08 + 0.1, g) == "f..");
  BOOST_TEST(fitted_label("f", 3 * 7.08 - 0.1, g).empty());
  BOOST_TEST(fitted_label("größe", 4 * 7.08 + 0.1, g) == "gr..");
  BOOST_TEST(fitted_label("größe", 5 * 7.08 + 0.1, g) == "größe");
  BOOST_TEST(fitted_label("\xff\xff\xff\xff", 3 * 7.08 + 0.1, g) == "\xff..");
}

BOOST_AUTO_TEST_CASE(the_height_follows_the_levels_and_the_font) {
  Geometry g{.levels = 4};
  BOOST_TEST(g.height() == 4 * 18 + 36 + 34);
  BOOST_TEST(g.frame_y(0) == 36 + 3 * 18 + 1);
  g.has_subtitle = true;
  BOOST_TEST(g.height() == 4 * 18 + 36 + 34 + 24);
  g.inverted = true;  // the subtitle has a row of its own
  BOOST_TEST(g.frame_y(0) == 36 + 24);
  g.subtitle_overlaps = true;
  BOOST_TEST(g.frame_y(0) == 36);
}

BOOST_AUTO_TEST_CASE(a_frame_is_a_titled_rectangle) {
  PageStyle style;
  style.geometry.levels = 2;
  BOOST_TEST(frame_text(style, {.name = "a<b",
                                .detail = "1 samples, 50.00%",
                                .fill = {250, 200, 100},
                                .depth = 1,
                                .left = 10.04,
                                .right = 60.05,
                                .start = "0",
                                .count = "1"}) ==
             "<g data-at=\"0 1 1\"><title>a&lt;b (1 samples, 50.00%)</title>"
             "<rect x=\"10\" width=\"50\" y=\"37\" height=\"17\" fill=\"rgb(250,200,100)\"/>"
             "<text x=\"13\" y=\"49.8\">a&lt;b</text></g>\n");
}

BOOST_AUTO_TEST_CASE(labels_on_dark_frames_are_light) {
  PageStyle style;
  BOOST_TEST(
      frame_text(style,
                 {.name = "f", .detail = "", .fill = {205, 0, 0}, .start = "0", .count = "1"})
          .starts_with("<g class=\"dark\" "));
}

BOOST_AUTO_TEST_CASE(texts_of_the_command_line_are_escaped_too) {
  PageStyle style;
  style.title = "<script>1</script>";
  style.font_family = "\" onload=\"x";
  style.count_name = "<&>";
  style.name_type = "\"/>";
  pe::StringOutput out;
  PageWriter writer(style, out);
  writer.begin();
  writer.end();
  BOOST_TEST(out.text.find("<script>1") == std::string::npos);
  BOOST_TEST(out.text.find("\" onload") == std::string::npos);
  BOOST_TEST(out.text.find("data-countname=\"&lt;&amp;&gt;\" data-nametype=\"&quot;/&gt;\"") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
