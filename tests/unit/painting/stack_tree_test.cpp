// SPDX-License-Identifier: MIT
#include "painting/tree/stack_tree.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "painting/tree/stack_path.h"

using pe::painting::StackPath;
using pe::painting::StackTree;
using pe::painting::StackTreeChildren;
using Stack = std::vector<StackTree::Frame>;

namespace {

Stack stack_of(const StackTree& tree, StackTree::Node node) {
  Stack stack;
  tree.copy_stack(node, stack);
  return stack;
}

/// Numbers letters of the alphabet; an empty frame is 0.
Stack letters(StackPath& path, std::string_view text) {
  const auto numbers = path.follow(text, [](auto, std::string_view frame) {
    return frame.empty() ? 0U : static_cast<std::uint32_t>(frame[0] - 'a' + 1);
  });
  return {numbers.begin(), numbers.end()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stack_tree)

BOOST_AUTO_TEST_CASE(a_stack_keeps_its_node_when_others_leave_its_run) {
  StackTree tree;
  const auto whole = tree.add(Stack{1, 2, 3, 4});
  const auto other = tree.add(Stack{1, 2, 5});
  const auto prefix = tree.add(Stack{1});
  BOOST_TEST(tree.add(Stack{1, 2, 3, 4}) == whole);
  BOOST_TEST(tree.add(Stack{1, 2, 5}) == other);
  BOOST_TEST(tree.add(Stack{1}) == prefix);
  BOOST_TEST((stack_of(tree, whole) == Stack{1, 2, 3, 4}));
  BOOST_TEST((stack_of(tree, other) == Stack{1, 2, 5}));
  BOOST_TEST((stack_of(tree, prefix) == Stack{1}));
  BOOST_TEST(tree.size() == 5U);  // the top, and [1] [2] [3 4] [5]
}

BOOST_AUTO_TEST_CASE(the_stack_without_frames_ends_in_the_top) {
  StackTree tree;
  BOOST_TEST(tree.add(Stack{}) == StackTree::kTop);
  BOOST_TEST(stack_of(tree, StackTree::kTop).empty());
}

BOOST_AUTO_TEST_CASE(agrees_with_a_map_also_after_its_index_was_dropped) {
  std::mt19937 random(1);  // NOLINT: the same stacks every time
  StackTree tree;
  std::map<Stack, StackTree::Node> expected;
  for (int i = 0; i < 50'000; ++i) {
    Stack stack(random() % 12);
    for (auto& frame : stack)
      frame = random() % 3;
    if (i % 10'000 == 9'999)
      tree.drop_index();
    const auto node = tree.add(stack);
    BOOST_REQUIRE(expected.try_emplace(stack, node).first->second == node);
  }
  for (const auto& [stack, node] : expected)
    BOOST_REQUIRE((stack_of(tree, node) == stack));
  BOOST_TEST(tree.size() <= 2 * expected.size());
}

BOOST_AUTO_TEST_CASE(lists_each_node_once_below_its_parent) {
  StackTree tree;
  for (StackTree::Frame i = 0; i < 1000; ++i)
    tree.add(Stack{i % 7, i % 5, i});
  const StackTreeChildren children(tree);
  std::size_t listed = 0;
  for (StackTree::Node parent = 0; parent < tree.size(); ++parent)
    for (auto child = children.first(parent); child != children.kNone;
         child = children.next(child), ++listed)
      BOOST_REQUIRE(tree.parent(child) == parent);
  BOOST_TEST(listed == tree.size() - 1);
}

BOOST_AUTO_TEST_CASE(stores_a_deep_chain_of_prefixes_once) {
  constexpr std::size_t kDepth = 100'000;
  StackTree tree;
  const Stack deep(kDepth, 7);
  const auto deepest = tree.add(deep);
  for (std::size_t depth = 1; depth < kDepth; depth += 997)
    tree.add(std::span(deep).first(depth));
  BOOST_TEST(tree.add(deep) == deepest);
  BOOST_TEST((stack_of(tree, deepest) == deep));
  BOOST_TEST(tree.size() < 200U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(stack_path)

BOOST_AUTO_TEST_CASE(numbers_the_frames_after_the_shared_ones) {
  StackPath path;
  BOOST_TEST((letters(path, "a;b;c") == Stack{1, 2, 3}));
  BOOST_TEST((letters(path, "a;b") == Stack{1, 2}));
  BOOST_TEST((letters(path, "a;bb;c") == Stack{1, 2, 3}));
  BOOST_TEST((letters(path, "a;b;c") == Stack{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(an_empty_frame_counts_as_a_frame) {
  StackPath path;
  BOOST_TEST((letters(path, "") == Stack{0}));
  BOOST_TEST((letters(path, ";a") == Stack{0, 1}));
  BOOST_TEST((letters(path, "a") == Stack{1}));
  BOOST_TEST((letters(path, "a;") == Stack{1, 0}));
  BOOST_TEST((letters(path, "a;;b") == Stack{1, 0, 2}));
  BOOST_TEST((letters(path, "a;") == Stack{1, 0}));
  BOOST_TEST((letters(path, "") == Stack{0}));
  BOOST_TEST((letters(path, "") == Stack{0}));
}

BOOST_AUTO_TEST_SUITE_END()
