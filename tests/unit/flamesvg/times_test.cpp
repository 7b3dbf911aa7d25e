// SPDX-License-Identifier: MIT
#include "painting/times.h"

#include <boost/test/unit_test.hpp>

#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "flamesvg/profile.h"
#include "flamesvg/reshaper.h"
#include "painting/embed.h"
#include "painting/tree/tree_builder.h"
#include "support/unpacked_tree.h"

using namespace pe;
using painting::CallTree;
using painting::NodeId;
using painting::Reshaper;
using painting::Times;
using pe::testing::TreeUnpacker;
using pe::testing::UnpackedTimes;

namespace pe::testing {

std::ostream& operator<<(std::ostream& out, const UnpackedTimes::Part& part) {
  return out << part.step << ':' << part.place << '=' << part.count;
}

}  // namespace pe::testing

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMs = 1'000'000;
const std::vector<std::uint32_t> kSamePlaces{0, 1, 2, 3};

UnpackedTimes unpacked(const Times& times, std::uint64_t limit = kNoLimit) {
  return TreeUnpacker::unpack_times(times.packed(kSamePlaces, limit));
}

void check_parts(const UnpackedTimes& times, const std::vector<UnpackedTimes::Part>& parts) {
  BOOST_TEST(times.parts == parts, boost::test_tools::per_element());
}

/// "A>B C>D": the stacks of a tree, and where each is after reshaping.
std::string moves(const std::vector<std::string>& stacks, CallTree (*reshape)(CallTree)) {
  const auto path = [](const CallTree& tree, NodeId node) {
    std::string text;
    for (; node != painting::kRoot; node = tree.parent(node))
      text.insert(0, std::string(tree.name(node)));
    return text;
  };
  painting::TreeBuilder builder;
  std::vector<NodeId> numbers;
  for (const std::string& stack : stacks)
    numbers.push_back(builder.add(stack, {.whole = 1}));
  std::vector<NodeId> nodes;
  CallTree tree = std::move(builder).finish(nodes);
  std::vector<std::string> before;
  for (const NodeId number : numbers)
    before.push_back(path(tree, nodes[number]));
  const painting::Counterparts shape(tree);
  tree = reshape(std::move(tree));
  const std::vector<NodeId> found = shape.in(tree);
  std::string text;
  for (std::size_t i = 0; i < stacks.size(); ++i)
    text += before[i] + ">" + path(tree, found[nodes[numbers[i]]]) + " ";
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(times)

BOOST_AUTO_TEST_CASE(steps_are_the_longest_that_hold_all_times) {
  Times times;
  times.add(12'300 * kMs, 2, {.whole = 5});
  times.add(12'000 * kMs, 1, {.whole = 7});
  times.add(12'300 * kMs, 1, {.whole = 1});
  times.add(12'300 * kMs, 2, {.whole = 2});
  times.add(12'500 * kMs, 3, {.whole = 300});
  const UnpackedTimes back = unpacked(times);
  BOOST_TEST(back.start_ns == 12'000 * kMs);
  BOOST_TEST(back.step_ns == 100 * kMs);
  BOOST_TEST(back.steps == 6U);
  BOOST_TEST(back.decimals == 0U);
  check_parts(back, {{0, 1, 7}, {3, 1, 1}, {3, 2, 7}, {5, 3, 300}});
}

BOOST_AUTO_TEST_CASE(counts_keep_their_decimals) {
  Times times;
  times.add(0, 1, {.whole = 1, .billionths = 250'000'000});
  times.add(0, 2, {.whole = 2});
  const UnpackedTimes back = unpacked(times);
  BOOST_TEST(back.decimals == 2U);
  BOOST_TEST(back.steps == 1U);
  check_parts(back, {{0, 1, 125}, {0, 2, 200}});
}

BOOST_AUTO_TEST_CASE(nodes_get_new_numbers) {
  Times times;
  times.add(0, 1, {.whole = 1});
  times.add(0, 0, {.whole = 2});
  times.renumber(std::vector<NodeId>{2, 0});
  check_parts(unpacked(times), {{0, 0, 1}, {0, 2, 2}});
}

BOOST_AUTO_TEST_CASE(joins_steps_until_they_fit) {
  Times times;
  for (std::uint64_t i = 0; i < 1000; ++i)
    times.add(i * i % 1000 * kMs, static_cast<NodeId>(i * 7919 % 4), {.whole = i % 50 + 1});
  const UnpackedTimes whole = unpacked(times);
  const std::size_t size = (times.packed(kSamePlaces, kNoLimit).size() + 2) / 3 * 4;
  const UnpackedTimes joined = unpacked(times, size - 1);
  BOOST_TEST(joined.step_ns > whole.step_ns);
  BOOST_TEST(joined.step_ns % whole.step_ns == 0U);
  std::uint64_t sums[2][4] = {};
  for (const auto& part : whole.parts)
    sums[0][part.place] += part.count;
  for (const auto& part : joined.parts)
    sums[1][part.place] += part.count;
  BOOST_TEST(sums[0] == sums[1], boost::test_tools::per_element());
  BOOST_TEST(joined.parts.back().step < joined.steps);
  BOOST_TEST(times.packed(kSamePlaces, 8).empty());
  BOOST_TEST(Times().packed(kSamePlaces, kNoLimit).empty());
}

BOOST_AUTO_TEST_CASE(there_are_at_most_a_million_steps) {
  Times times;
  times.add(0, 1, {.whole = 1});
  times.add(1, 1, {.whole = 1});
  times.add(9'999'999'999'999'999'999U, 2, {.whole = 1});
  const UnpackedTimes back = unpacked(times);
  BOOST_TEST(back.steps <= Times::kMostSteps);
  check_parts(back, {{0, 1, 2}, {back.steps - 1, 2, 1}});
}

BOOST_AUTO_TEST_CASE(small_frames_count_for_the_gap_that_replaces_them) {
  painting::TreeBuilder builder;
  Times times;
  times.add(0, builder.add("a;small1", {.whole = 1}), {.whole = 1});
  times.add(0, builder.add("a;small2;x", {.whole = 2}), {.whole = 2});
  for (int i = 0; i < 40; ++i)
    times.add(kMs, builder.add("a;big" + std::to_string(i), {.whole = 100}), {.whole = 100});
  std::vector<NodeId> nodes;
  const CallTree tree = std::move(builder).finish(nodes);
  times.renumber(nodes);
  const std::vector<painting::Rgb> colors(tree.name_count());
  const auto embed = [&](std::uint64_t limit) {
    return painting::embed_tree(
        tree, {.whole = tree.total(0), .limit = limit, .colors = colors, .times = &times});
  };
  auto limit = (embed(kNoLimit / 8).bytes.size() + 2) / 3 * 4;
  painting::EmbeddedTree embedded;
  while (embedded.left_out == 0)
    embedded = embed(--limit);
  const auto back = TreeUnpacker::unpack(embedded.bytes);
  const UnpackedTimes parts = TreeUnpacker::unpack_times(embedded.times);
  std::vector<std::uint64_t> own(back.nodes.size());
  for (const auto& part : parts.parts)
    own.at(part.place) += part.count;
  for (std::size_t node = 0; node < own.size(); ++node)
    BOOST_TEST(own[node] == back.nodes[node].self);
}

BOOST_AUTO_TEST_CASE(finds_nodes_of_reshaped_trees) {
  BOOST_TEST(moves({"a;b", "a;c;c;d", "a;c;e", "a"}, Reshaper::by_width) ==
             "ab>ab accd>accd ace>ace a>a ");
  BOOST_TEST(moves({"a;b;b;c", "a;b", "a;a;b;d", "a;b;a"}, Reshaper::without_recursion) ==
             "abbc>abc ab>ab aabd>abd aba>aba ");
  BOOST_TEST(moves({"a;b;c;d", "a;b", "a;b;e", "a", "f"}, [](CallTree tree) {
               return Reshaper::limited(std::move(tree), 2);
             }) == "abcd>ab[3 deeper frames] ab>ab abe>ab[3 deeper frames] a>a f>f ");
}

BOOST_AUTO_TEST_SUITE_END()
