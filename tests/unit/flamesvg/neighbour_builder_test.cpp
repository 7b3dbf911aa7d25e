// SPDX-License-Identifier: MIT
#include "flamesvg/reshaper.h"

#include <boost/test/unit_test.hpp>

#include "support/trees.h"

using pe::painting::CallTree;
using pe::painting::Differences;
using pe::painting::NeighbourBuilder;
using pe::testing::drawn;

BOOST_AUTO_TEST_SUITE(neighbour_builder)

namespace {

CallTree tree_of(const std::vector<std::string>& lines,
                 Differences differences = Differences::kInclusive) {
  return pe::testing::tree_of(lines, NeighbourBuilder(differences));
}

}  // namespace

BOOST_AUTO_TEST_CASE(stacks_stay_in_the_order_given) {
  BOOST_TEST(drawn(tree_of({"b;x 1", "a;y 2", "a;y 3", "b;x 5", "a 4"})) ==
             " 15/0\n b 1/0\n  x 1/1\n a 5/0\n  y 5/5\n b 5/0\n  x 5/5\n a 4/4\n");
}

BOOST_AUTO_TEST_CASE(a_caller_goes_on_under_the_next_callee) {
  BOOST_TEST(drawn(tree_of({"a;b;c 1", "a;b 2", "a 1", "a;b;;; 1"})) ==
             " 5/0\n a 5/1\n  b 3/2\n   c 1/1\n  b 1/1\n");
}

BOOST_AUTO_TEST_CASE(an_empty_stack_ends_all_that_went_before) {
  BOOST_TEST(drawn(tree_of({"a 1", ";; 2", "a 4"})) == " 7/2\n a 1/1\n a 4/4\n");
}

BOOST_AUTO_TEST_CASE(differences_include_what_is_above) {
  BOOST_TEST(drawn(tree_of({"a;b 1 3", "a 2 1"})) == " 4/0 +1\n a 4/1 +1\n  b 3/3 +2\n");
}

// The expected output is flamegraph.pl's for the same lines.
BOOST_AUTO_TEST_CASE(as_the_perl_has_it_only_the_first_line_of_a_stack_has_a_difference) {
  const CallTree tree =
      tree_of({"a 3 5", "a;b 1 2", "a;b 1 2", "c;d 7 1", "q 4"}, Differences::kPerl);
  BOOST_TEST(drawn(tree) == " 14/0 +0\n a 9/5 +2\n  b 4/4 +1\n c 1/0 +0\n  d 1/1 -6\n q 4/4\n");
  BOOST_TEST(tree.largest_delta() == 6.0);
}

BOOST_AUTO_TEST_SUITE_END()
