// SPDX-License-Identifier: MIT
#include "painting/embed.h"

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "flamesvg/reshaper.h"
#include "painting/times.h"
#include "painting/tree/tree_builder.h"
#include "support/costly.h"
#include "support/unpacked_tree.h"

using namespace pe;
using painting::CallTree;
using painting::kRoot;
using painting::NodeId;
using pe::testing::TreeUnpacker;
using pe::testing::UnpackedTree;

namespace {

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

struct Stack {
  std::string frames;
  folded::Count count;
};

CallTree tree_of(const std::vector<Stack>& stacks) {
  painting::TreeBuilder builder;
  for (const Stack& stack : stacks)
    builder.add(stack.frames, stack.count);
  return std::move(builder).finish();
}

/// Colors from which a test can tell each name's number.
std::vector<painting::Rgb> colors_of(const CallTree& tree) {
  std::vector<painting::Rgb> colors;
  for (std::uint32_t i = 0; i < tree.name_count(); ++i)
    colors.push_back(
        {static_cast<std::uint8_t>(i >> 8U), static_cast<std::uint8_t>(i), std::uint8_t{7}});
  return colors;
}

painting::EmbeddedTree embedded(const CallTree& tree, std::uint64_t limit = kAll) {
  const auto colors = colors_of(tree);
  return painting::embed_tree(tree, {.whole = tree.total(kRoot), .limit = limit, .colors = colors});
}

UnpackedTree round_trip(const CallTree& tree) { return TreeUnpacker::unpack(embedded(tree).bytes); }

/// A random tree with a heavy tail, as profiles have.
CallTree random_tree(unsigned seed, unsigned stacks, std::uint32_t billionths_step) {
  std::mt19937 random(seed);  // NOLINT: the same tree every time
  std::vector<Stack> list;
  for (unsigned i = 0; i < stacks; ++i) {
    std::string frames = "main";
    for (auto depth = random() % 30; depth > 0; --depth)
      frames += fmt::format(";f{}{}", random() % (depth % 7 + 2), random() % 9 == 0 ? "_[k]" : "");
    const auto weight = 1U << random() % 18;
    list.push_back({frames,
                    {.whole = random() % weight,
                     .billionths = static_cast<std::uint32_t>(random() % 10) * billionths_step}});
  }
  return tree_of(list);
}

/// One line "name total" for each node, indented by depth.
std::string outline(const UnpackedTree& tree) {
  std::string text;
  std::vector<std::size_t> depths(tree.nodes.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const auto& node = tree.nodes[i];
    depths[i] = i == 0 ? 0 : depths[node.parent] + 1;
    text += fmt::format("{:{}}{} {}\n", "", depths[i],
                        i == 0           ? "all"
                        : node.name == 0 ? "(gap)"
                                         : tree.names[node.name],
                        node.total);
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(embed)

BOOST_AUTO_TEST_CASE(a_tree_comes_back_as_it_was) {
  for (const std::uint32_t step : {0U, 100'000'000U, 1U}) {
    const CallTree tree = random_tree(1 + step, 3000, step);
    const auto colors = colors_of(tree);
    const UnpackedTree back = round_trip(tree);
    const painting::Ticks ticks(tree, tree.total(kRoot));
    BOOST_TEST(back.decimals == (step == 0 ? 0U : step == 1 ? 9U : 1U));
    BOOST_TEST(back.left_out == 0U);
    BOOST_TEST(back.whole == ticks.of(tree.total(kRoot)));
    std::size_t at = 0;
    for (NodeId node = kRoot; node < tree.size(); ++node) {
      if (node != kRoot && tree.total(node).is_zero())
        continue;
      const auto& packed = back.nodes.at(at++);
      BOOST_TEST_REQUIRE(packed.total == ticks.of(tree.total(node)));
      BOOST_TEST_REQUIRE(packed.self == ticks.of(tree.self(node)));
      BOOST_TEST_REQUIRE(back.names[packed.name] == tree.name(node));
      BOOST_TEST_REQUIRE((back.colors[packed.name] == colors[tree.name_id(node)]));
    }
    BOOST_TEST(at == back.nodes.size());
  }
}

BOOST_AUTO_TEST_CASE(children_keep_their_order_and_frequent_names_come_first) {
  const auto back = round_trip(tree_of({{"b;x", {3}}, {"a;x", {20}}, {"a;y;x", {1}}, {"c", {15}}}));
  BOOST_TEST(outline(back) ==
             "all 39\n"
             " a 21\n"
             "  x 20\n"
             "  y 1\n"
             "   x 1\n"
             " b 3\n"
             "  x 3\n"
             " c 15\n");
  BOOST_TEST(back.names[1] == "x");
}

BOOST_AUTO_TEST_CASE(many_children_and_large_counts_are_exact, *pe::tests::costly()) {
  std::vector<Stack> stacks{{"max", {std::numeric_limits<std::uint64_t>::max() - 70'000}}};
  for (unsigned i = 0; i < 70'000; ++i)  // more names than two bytes can number
    stacks.push_back({fmt::format("f{:05}", i), {1}});
  const auto back = round_trip(tree_of(stacks));
  BOOST_TEST(back.nodes[0].children == 70'001U);
  BOOST_TEST(back.nodes[0].total == std::numeric_limits<std::uint64_t>::max());
  BOOST_TEST(back.names[back.nodes[65'000].name] == "f64999");
  BOOST_TEST(back.nodes.back().self == std::numeric_limits<std::uint64_t>::max() - 70'000);
}

BOOST_AUTO_TEST_CASE(names_are_what_xml_would_show) {
  const auto back = round_trip(tree_of({{"a\x01<b>&\tc\xff_[j]", {1}}}));
  BOOST_TEST(back.names[back.nodes[1].name] == "a\xEF\xBF\xBD<b>& c\xEF\xBF\xBD_[j]");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_leaves_gaps_that_move_nothing, *pe::tests::costly()) {
  const CallTree tree = random_tree(5, 20'000, 0);
  const auto whole = embedded(tree);
  for (const double share : {0.9, 0.5, 0.2, 0.02}) {
    const auto limit =
        static_cast<std::uint64_t>(static_cast<double>(whole.bytes.size()) * share * 4 / 3);
    const auto cut = embedded(tree, limit);
    BOOST_TEST_CONTEXT("share " << share) {
      BOOST_TEST_REQUIRE(!cut.bytes.empty());
      BOOST_TEST((cut.bytes.size() + 2) / 3 * 4 <= limit);
      const auto back = TreeUnpacker::unpack(cut.bytes);
      BOOST_TEST(back.nodes[0].total == tree.total(kRoot).whole);
      BOOST_TEST(back.left_out == cut.left_out);
      BOOST_TEST(back.smallest == cut.smallest.whole);
      // Walks both trees: a kept node is the next node of the tree; a gap represents the nodes
      // before it.
      std::uint64_t left_out = 0;
      NodeId node = kRoot;
      std::vector<std::uint32_t> waiting;
      for (std::size_t i = 0; i < back.nodes.size(); ++i) {
        const auto& packed = back.nodes[i];
        const auto is_gap = i != 0 && packed.name == 0;
        std::uint64_t skipped = 0;
        while (node != kRoot && node < tree.size() && tree.total(node) < cut.smallest &&
               (!is_gap || skipped < packed.total)) {
          skipped += tree.total(node).whole;
          left_out += tree.total(node).is_zero() ? 0 : tree.subtree_end(node) - node;
          node = tree.subtree_end(node);
        }
        if (is_gap) {
          BOOST_TEST_REQUIRE(skipped == packed.total);
          BOOST_TEST_REQUIRE(packed.children == 0U);
          continue;
        }
        BOOST_TEST_REQUIRE(skipped == 0U);
        BOOST_TEST_REQUIRE(packed.total == tree.total(node).whole);
        BOOST_TEST_REQUIRE(packed.self == tree.self(node).whole);
        BOOST_TEST_REQUIRE(back.names[packed.name] == tree.name(node));
        ++node;
      }
      BOOST_TEST(left_out == cut.left_out);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_smallest_frames_are_left_out_first) {
  std::vector<Stack> stacks;
  for (unsigned i = 0; i < 3000; ++i)
    stacks.push_back({fmt::format("main;f{};g{}", i % 50, i), {i % 10 == 0 ? 100U : 1U}});
  const auto cut = embedded(tree_of(stacks), 5000);
  BOOST_TEST(cut.smallest.whole > 1U);
  BOOST_TEST(cut.smallest.whole <= 100U);
  BOOST_TEST(cut.left_out == 2700U);
}

BOOST_AUTO_TEST_CASE(a_limit_that_nothing_fits_gives_no_tree) {
  BOOST_TEST(embedded(random_tree(1, 100, 0), 8).bytes.empty());
}

BOOST_AUTO_TEST_CASE(differences_come_back_with_their_signs) {
  for (const bool negate : {false, true}) {
    painting::TreeBuilder builder;
    builder.add("a;grown", {7}, folded::Count{2});
    builder.add("a;shrunk", {2}, folded::Count{3});
    builder.add("a;same", {4}, folded::Count{4});
    const CallTree tree = std::move(builder).finish();
    const auto colors = colors_of(tree);
    const auto back = TreeUnpacker::unpack(
        painting::embed_tree(tree,
                             {.whole = {13}, .limit = kAll, .colors = colors, .negate = negate})
            .bytes);
    BOOST_TEST(back.largest_delta == tree.largest_delta());
    for (NodeId node = kRoot; node < tree.size(); ++node) {
      BOOST_REQUIRE(tree.delta(node) && back.nodes[node].delta);
      BOOST_TEST(*back.nodes[node].delta == (negate ? -1 : 1) * *tree.delta(node));
    }
  }
}

BOOST_AUTO_TEST_CASE(fractional_differences_are_exact_enough_for_tooltips) {
  painting::TreeBuilder builder;
  builder.add("a", {3}, folded::Count{1, 333'333'333});
  builder.add("b", {3}, folded::Count{5, 200'000'000});
  const CallTree tree = std::move(builder).finish();
  const auto back = round_trip(tree);
  for (NodeId node = kRoot; node < tree.size(); ++node)
    BOOST_TEST(std::abs(*back.nodes[node].delta - *tree.delta(node)) < 0.0001);
}

BOOST_AUTO_TEST_CASE(a_flame_chart_keeps_the_places_of_its_frames) {
  painting::NeighbourBuilder builder(painting::Differences::kInclusive);
  for (const auto* stack : {"a;x", "a", "a;x", "a;y", "b", "a;x"})
    builder.add(stack, {5});
  const CallTree tree = std::move(builder).finish();
  BOOST_REQUIRE(tree.has_starts());
  const auto back = round_trip(tree);
  std::vector<std::uint64_t> next(back.nodes.size());
  for (NodeId node = kRoot + 1; node < tree.size(); ++node) {
    const auto start = next[back.nodes[node].parent] + back.nodes[node].space;
    BOOST_TEST(start == tree.start(node).whole);
    next[back.nodes[node].parent] = start + back.nodes[node].total;
    next[node] = start;
  }
}

BOOST_AUTO_TEST_CASE(a_stack_of_100000_frames_is_embedded) {
  std::string frames = "f";
  for (int i = 1; i < 100'000; ++i)
    frames += ";f";
  BOOST_TEST(round_trip(tree_of({{frames, {1}}})).nodes.size() == 100'001U);
}

BOOST_AUTO_TEST_CASE(ticks_are_the_coarsest_unit_that_fits) {
  const auto decimals = [](folded::Count a, folded::Count b) {
    const CallTree tree = tree_of({{"a", a}, {"b", b}});
    return painting::Ticks(tree, tree.total(kRoot)).decimals();
  };
  BOOST_TEST(decimals({1}, {2}) == 0U);
  BOOST_TEST(decimals({1, 500'000'000}, {2}) == 1U);
  BOOST_TEST(decimals({1, 500'000'000}, {2, 1'000}) == 6U);
  BOOST_TEST(decimals({1, 1}, {10'000'000'000}) == 9U);
  BOOST_TEST(decimals({1, 1}, {1'000'000'000'000}) == 7U);  // 10^12 in billionths is too large
}

BOOST_AUTO_TEST_CASE(what_was_counted_in_two_profiles_comes_back) {
  const CallTree tree = random_tree(9, 2000, 0);
  std::mt19937 random(4);  // NOLINT: the same counts every time
  painting::ComparedNodes compared;
  compared.whole_before = 1234.5;
  compared.whole_after = 99'999;
  compared.largest = 0.25;
  compared.dims_noise = true;
  for (NodeId node = 0; node < tree.size(); ++node) {
    compared.before.push_back({.whole = random() % 1000, .billionths = 500'000'000});
    compared.after.push_back({.whole = random()});
    const auto noise = static_cast<painting::Noise>(random() % 4);
    const double low = static_cast<double>(random() % 2'000'000) / 1e6 - 1;
    compared.changes.push_back({.noise = noise, .interval = {low, low + 0.125}});
  }
  const auto colors = colors_of(tree);
  const auto embedded = painting::embed_tree(
      tree, {.whole = tree.total(kRoot), .limit = kAll, .colors = colors, .compared = &compared});
  const UnpackedTree back = TreeUnpacker::unpack(embedded.bytes);
  BOOST_TEST(back.is_compared);
  BOOST_TEST(back.dims_noise);
  BOOST_TEST(back.whole_before == 1234.5);
  BOOST_TEST(back.whole_after == 99'999.0);
  BOOST_TEST(back.largest_change == 0.25);
  BOOST_TEST(back.decimals == 1U);
  std::size_t at = 0;
  for (NodeId node = kRoot; node < tree.size(); ++node) {
    if (node != kRoot && tree.total(node).is_zero())
      continue;
    const auto& packed = back.nodes.at(at++);
    BOOST_TEST_REQUIRE(packed.before == compared.before[node].whole * 10 + 5);
    BOOST_TEST_REQUIRE(packed.after == compared.after[node].whole * 10);
    BOOST_TEST_REQUIRE(packed.noise == static_cast<unsigned>(compared.changes[node].noise));
    if (packed.noise == 0)
      continue;
    BOOST_TEST_REQUIRE(std::abs(packed.low - compared.changes[node].interval.low) < 1e-9);
    BOOST_TEST_REQUIRE(std::abs(packed.high - compared.changes[node].interval.high) < 1e-9);
  }
  BOOST_TEST(at == back.nodes.size());
}

BOOST_AUTO_TEST_CASE(folded_recursion_keeps_its_depth) {
  const CallTree tree = painting::Reshaper::without_recursion(
      tree_of({{"a;b;b;b;c", {.whole = 3}}, {"a;b;b", {.whole = 1}}, {"d", {.whole = 1}}}));
  const UnpackedTree back = TreeUnpacker::unpack(embedded(tree).bytes);
  std::string text;
  for (const auto& node : back.nodes)
    text += fmt::format("{}{} ", back.names[node.name], node.repeats);
  BOOST_TEST(text == "1 a1 b3 c1 d1 ");
}

BOOST_AUTO_TEST_SUITE_END()
