// SPDX-License-Identifier: MIT
#include "painting/layout.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "painting/tree/tree_builder.h"
#include "support/trees.h"

using namespace pe::painting;

namespace {

struct Cut {
  std::string boxes, towers;  ///< "name depth, ..." and "left-right +rows, ..."
  std::uint32_t left_out = 0;
  std::uint32_t levels = 0;
};

/// Lays out lines on 100 pixels.
Cut cut(const std::vector<std::string>& lines, std::uint32_t levels) {
  const CallTree tree = pe::testing::tree_of<TreeBuilder>(lines);
  Layout layout = lay_out(tree, {.usable_width = 100, .min_width = {}, .total = {}});
  Cut cut{.boxes = {}, .towers = {}, .left_out = cut_towers(layout, levels)};
  cut.levels = layout.levels;
  for (const Box& box : layout.boxes)
    cut.boxes += fmt::format("{}{}, ", tree.name(box.node), box.depth);
  for (const Tower& tower : layout.towers)
    cut.towers += fmt::format("{:.0f}-{:.0f} +{}, ", tower.left, tower.right, tower.rows);
  return cut;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layout)

BOOST_AUTO_TEST_CASE(towers_replace_what_stands_above_the_last_row) {
  const std::vector<std::string> lines{"a;b;c;d 2", "a;b;e 2", "a;f 4", "g;h;i 2"};
  const Cut r = cut(lines, 3);
  BOOST_TEST(r.boxes == "0, a1, f2, g1, ");
  BOOST_TEST(r.towers == "10-50 +2, 90-110 +1, ");
  BOOST_TEST(r.left_out == 2U);
  BOOST_TEST(r.levels == 3U);
}

BOOST_AUTO_TEST_CASE(what_fits_stays) {
  for (const std::uint32_t levels : {4U, 5U}) {
    const Cut r = cut({"a;b;c 1", "a;d 1"}, levels);
    BOOST_TEST(r.boxes == "0, a1, b2, c3, d2, ");
    BOOST_TEST(r.towers.empty());
    BOOST_TEST(r.left_out == 0U);
    BOOST_TEST(r.levels == 4U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
