// SPDX-License-Identifier: MIT
#include "flamesvg/reshaper.h"

#include <boost/test/unit_test.hpp>

#include "painting/tree/tree_builder.h"
#include "support/trees.h"

using pe::painting::CallTree;
using pe::painting::Reshaper;
using pe::painting::TreeBuilder;
using pe::testing::drawn;

BOOST_AUTO_TEST_SUITE(reshaper)

namespace {

CallTree tree_of(const std::vector<std::string>& lines) {
  return pe::testing::tree_of<TreeBuilder>(lines);
}

}  // namespace

BOOST_AUTO_TEST_CASE(by_width_puts_the_largest_child_first) {
  BOOST_TEST(drawn(Reshaper::by_width(tree_of({"a;x 1", "a;y 5", "b 9", "c 6", "d 9"}))) ==
             " 30/0\n b 9/9\n d 9/9\n a 6/0\n  y 5/5\n  x 1/1\n c 6/6\n");
}

BOOST_AUTO_TEST_CASE(by_width_takes_differences_along) {
  BOOST_TEST(drawn(Reshaper::by_width(tree_of({"a 1 2", "b 9 5"}))) ==
             " 7/0 -3\n b 5/5 -4\n a 2/2 +1\n");
}

BOOST_AUTO_TEST_CASE(what_is_too_deep_becomes_one_frame_that_says_how_many) {
  BOOST_TEST(drawn(Reshaper::limited(tree_of({"a;b;c;d 1", "a;b;e 2", "a;b 4", "x 8"}), 2)) ==
             " 15/0\n a 7/0\n  b 7/4\n   [3 deeper frames] 3/3\n x 8/8\n");
}

BOOST_AUTO_TEST_CASE(a_limit_that_nothing_reaches_changes_nothing) {
  const std::vector<std::string> lines{"a;b 1 2", "c 1 1"};
  BOOST_TEST(drawn(Reshaper::limited(tree_of(lines), 2)) == drawn(tree_of(lines)));
}

BOOST_AUTO_TEST_CASE(folded_frames_differ_by_what_they_hold) {
  BOOST_TEST(drawn(Reshaper::limited(tree_of({"a;b 1 2", "a;c 4 1"}), 1)) ==
             " 3/0 -2\n a 3/0 -2\n  [2 deeper frames] 3/3 -2\n");
}

BOOST_AUTO_TEST_CASE(direct_recursion_is_one_frame_with_all_its_callees) {
  const CallTree tree = Reshaper::without_recursion(
      tree_of({"m;f 1", "m;f;f;f;x 2", "m;f;f;f;z;f 16", "m;f;f;x;y 4", "m;f;x 8"}));
  BOOST_TEST(drawn(tree) ==
             " 31/0\n m 31/0\n  f 31/1\n   x 14/10\n    y 4/4\n   z 16/0\n    f 16/16\n");
  BOOST_TEST(tree.repeats(0) == 1U);
  BOOST_TEST(tree.repeats(2) == 3U);
  BOOST_TEST(tree.repeats(3) == 1U);
  BOOST_TEST(Reshaper::by_width(tree_of({"a 1"})).repeats(1) == 1U);
}

BOOST_AUTO_TEST_CASE(differences_of_recursion_are_those_of_its_first_frame) {
  BOOST_TEST(drawn(Reshaper::without_recursion(tree_of({"f;f;g 1 4", "f;g 2 1", "f;f 5 5"}))) ==
             " 10/0 +2\n f 10/5 +2\n  g 5/5 +2\n");
}

BOOST_AUTO_TEST_CASE(empty_names_do_not_recur_into_the_root) {
  BOOST_TEST(drawn(Reshaper::without_recursion(tree_of({";a 1"}))) == drawn(tree_of({";a 1"})));
}

BOOST_AUTO_TEST_CASE(numbers_of_repeats_survive_another_shape) {
  const auto folded = [] { return Reshaper::without_recursion(tree_of({"a 1", "f;f;g;h 5"})); };
  BOOST_TEST(Reshaper::by_width(folded()).repeats(1) == 2U);
  const CallTree limited = Reshaper::limited(folded(), 1);
  BOOST_TEST(limited.repeats(2) == 2U);
  BOOST_TEST(limited.repeats(3) == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
