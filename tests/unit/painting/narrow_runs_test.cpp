// SPDX-License-Identifier: MIT
#include "painting/svg/narrow_runs.h"

#include <boost/test/unit_test.hpp>

using namespace pe::painting;

namespace {

constexpr Rgb kRed{200, 0, 0};
constexpr Rgb kBlue{0, 0, 200};
constexpr Geometry kGeometry{.levels = 2};

std::string paths_of(const std::vector<NarrowRuns::Frame>& frames) {
  NarrowRuns runs;
  for (const auto& frame : frames)
    runs.add(frame, kGeometry);
  std::string text;
  runs.append_paths(text, kGeometry);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(narrow_runs)

BOOST_AUTO_TEST_CASE(neighbours_are_joined_until_they_fill_a_pixel) {
  BOOST_TEST(paths_of({{1, 10, 10.4, kRed},
                       {1, 10.4, 10.7, kRed},
                       {1, 10.7, 11.1, kRed},
                       {1, 11.1, 11.3, kRed}}) ==
             "<path fill=\"#c80808\" d=\"M10 37h1.1v17h-1.1zM11.1 37h0.2v17h-0.2z\"/>\n");
}

BOOST_AUTO_TEST_CASE(a_hole_ends_a_run_and_rows_are_apart) {
  BOOST_TEST(paths_of({{1, 10, 10.4, kRed}, {0, 10, 10.6, kRed}, {1, 10.6, 11, kRed}}) ==
             "<path fill=\"#c80808\" d=\"M10 37h0.4v17h-0.4zM10 55h0.6v17h-0.6zM10.6 "
             "37h0.4v17h-0.4z\"/>\n");
}

BOOST_AUTO_TEST_CASE(a_run_has_the_colour_of_its_widest_frame) {
  BOOST_TEST(paths_of({{1, 10, 10.1, kRed}, {1, 10.1, 10.6, kBlue}, {1, 10.6, 10.9, kRed}}) ==
             "<path fill=\"#0808c8\" d=\"M10 37h0.9v17h-0.9z\"/>\n");
}

BOOST_AUTO_TEST_CASE(what_rounds_to_nothing_is_not_drawn) {
  BOOST_TEST(paths_of({{1, 10, 10.04, kRed}}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
