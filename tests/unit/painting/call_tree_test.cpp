// SPDX-License-Identifier: MIT
#include "painting/tree/call_tree.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "painting/tree/tree_builder.h"
#include "support/trees.h"

using pe::painting::CallTree;
using pe::painting::Count;
using pe::painting::kRoot;
using pe::painting::NodeId;
using pe::painting::TreeBuilder;
using pe::testing::drawn;

BOOST_AUTO_TEST_SUITE(call_tree)

namespace {

CallTree tree_of(const std::vector<std::string>& lines) {
  return pe::testing::tree_of<TreeBuilder>(lines);
}

std::vector<std::string> random_lines(unsigned seed) {
  std::mt19937 random(seed);  // NOLINT: the same stacks every time
  std::vector<std::string> lines;
  for (int i = 0; i < 2000; ++i) {
    std::string line;
    for (auto frames = random() % 12 + 1; frames > 0; --frames)
      line += (line.empty() ? "f" : ";f") + std::to_string(random() % (frames % 3 == 0 ? 30 : 2));
    lines.push_back(line + " " + std::to_string(random() % 100));
  }
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_stack_gives_the_root_alone) { BOOST_TEST(drawn(tree_of({})) == " 0/0\n"); }

BOOST_AUTO_TEST_CASE(children_of_one_name_are_one_node_wherever_they_stand) {
  // As a line, "foo.cold" sorts between the two lines of "foo".
  BOOST_TEST(drawn(tree_of({"foo 10", "foo.cold 3", "foo;bar 5"})) ==
             " 18/0\n foo 15/10\n  bar 5/5\n foo.cold 3/3\n");
}

BOOST_AUTO_TEST_CASE(children_are_ordered_by_name_bytewise) {
  BOOST_TEST(drawn(tree_of({"b 1", "a;z 1", "B 1", "a;\xff 1", "a;a 1"})) ==
             " 5/0\n B 1/1\n a 3/0\n  a 1/1\n  z 1/1\n  \xff 1/1\n b 1/1\n");
}

BOOST_AUTO_TEST_CASE(a_name_that_begins_like_the_one_before_is_another) {
  BOOST_TEST(drawn(tree_of({"a;bc;d 1", "a;b 1", "a;bcd 1", "a 1", "a;bc 1"})) ==
             " 5/0\n a 5/1\n  b 1/1\n  bc 2/1\n   d 1/1\n  bcd 1/1\n");
}

BOOST_AUTO_TEST_CASE(empty_frames_count_except_at_the_end) {
  BOOST_TEST(drawn(tree_of({"a;;b;; 1", ";a 2", ";; 4"})) ==
             " 7/4\n  2/0\n  a 2/2\n a 1/0\n   1/0\n   b 1/1\n");
}

BOOST_AUTO_TEST_CASE(fractions_add_up_exactly) {
  BOOST_TEST(drawn(tree_of({"a 0.1", "a;b 0.2"})) == " 0.3/0\n a 0.3/0.1\n  b 0.2/0.2\n");
}

BOOST_AUTO_TEST_CASE(totals_that_do_not_fit_are_told) {
  const CallTree tree = tree_of({"a 18446744073709551615", "b 2"});
  BOOST_TEST(tree.saturated());
  BOOST_TEST((tree.total(kRoot) == Count::max()));
}

BOOST_AUTO_TEST_CASE(a_stack_of_100000_frames_is_a_tree_like_any_other) {
  std::string stack = "f";
  for (int i = 1; i < 100'000; ++i)
    stack += ";f";
  const CallTree tree = tree_of({stack + " 3", stack + ";g 4"});
  BOOST_TEST(tree.size() == 100'002U);
  BOOST_TEST(tree.total(1).whole == 7U);
  BOOST_TEST(tree.name(100'001) == "g");
}

BOOST_AUTO_TEST_CASE(any_order_of_lines_gives_the_same_tree) {
  std::vector<std::string> lines = random_lines(1);
  const std::string unsorted = drawn(tree_of(lines));
  std::sort(lines.begin(), lines.end());
  BOOST_TEST((drawn(tree_of(lines)) == unsorted));
  std::reverse(lines.begin(), lines.end());
  BOOST_TEST((drawn(tree_of(lines)) == unsorted));
}

BOOST_AUTO_TEST_CASE(totals_are_self_plus_the_childrens_totals) {
  const CallTree tree = tree_of(random_lines(2));
  for (NodeId node = 0; node < tree.size(); ++node) {
    Count sum = tree.self(node);
    std::string_view previous;
    for (NodeId c = node + 1; c < tree.subtree_end(node); c = tree.subtree_end(c)) {
      BOOST_TEST_REQUIRE(tree.parent(c) == node);
      BOOST_TEST_REQUIRE(tree.subtree_end(c) <= tree.subtree_end(node));
      BOOST_TEST_REQUIRE((c == node + 1 || previous < tree.name(c)));
      BOOST_TEST_REQUIRE(sum.add(tree.total(c)));
      previous = tree.name(c);
    }
    BOOST_TEST_REQUIRE((sum == tree.total(node)));
  }
}

BOOST_AUTO_TEST_CASE(differences_are_of_a_frame_with_all_above_it) {
  const CallTree tree = tree_of({"a;b 10 20", "a;c 5 1", "d 3 3", "a;b 0 2"});
  BOOST_TEST(drawn(tree) == " 26/0 +8\n a 23/0 +8\n  b 22/22 +12\n  c 1/1 -4\n d 3/3 +0\n");
  BOOST_TEST(tree.largest_delta() == 12.0);
}

BOOST_AUTO_TEST_CASE(one_profile_has_no_differences) {
  const CallTree tree = tree_of({"a 1"});
  BOOST_TEST(!tree.is_differential());
  BOOST_TEST(!tree.delta(kRoot));
}

BOOST_AUTO_TEST_SUITE_END()
