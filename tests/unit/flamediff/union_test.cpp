// Several profiles in one tree, and the trees that are drawn from it.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "flamediff/picture.h"
#include "painting/tree/functions.h"
#include "painting/tree/tree_builder.h"
#include "support/trees.h"

using namespace pe;
using painting::Count;
using painting::kRoot;
using painting::NodeId;
using painting::ProfileUnion;
using painting::TreeBuilder;
using painting::Weigher;

BOOST_AUTO_TEST_SUITE(profile_union)

namespace {

struct Added {
  std::size_t profile;
  const char* stack;
  std::uint64_t count;
};

ProfileUnion union_of(const std::vector<Added>& stacks, std::size_t profiles,
                      TreeBuilder::Rename rename = nullptr) {
  TreeBuilder builder(std::move(rename));
  for (const Added& a : stacks)
    builder.add_to(a.profile, a.stack, {.whole = a.count});
  return std::move(builder).finish_union(profiles);
}

/// One line "name total/self total/self ..." for each node, indented by depth.
std::string text_of(const ProfileUnion& all) {
  std::string out;
  for (NodeId node = 0; node < all.tree.size(); ++node) {
    for (NodeId above = node; above != kRoot; above = all.tree.parent(above))
      out += ' ';
    out += all.tree.name(node);
    for (const auto& profile : all.profiles)
      out += fmt::format(" {}/{}", profile.total[node].whole, profile.self[node].whole);
    out += '\n';
  }
  return out;
}

const std::vector<Added> kTwo = {
    {0, "main;old;deep", 3}, {0, "main;kept", 5}, {1, "main;kept", 7}, {1, "main;new", 2}};

std::vector<Count> self_of(const ProfileUnion& all, std::size_t profile) {
  return all.profiles[profile].self;
}

}  // namespace

BOOST_AUTO_TEST_CASE(has_each_frame_of_any_profile_with_the_counts_of_all) {
  BOOST_TEST(
      text_of(union_of(kTwo, 2)) ==
      " 8/0 9/0\n main 8/0 9/0\n  kept 5/5 7/7\n  new 0/0 2/2\n  old 3/0 0/0\n   deep 3/3 0/0\n");
  BOOST_TEST(text_of(union_of({{2, "a", 1}}, 4)) == " 0/0 0/0 1/0 0/0\n a 0/0 0/0 1/1 0/0\n");
  BOOST_TEST(text_of(union_of({}, 2)) == " 0/0 0/0\n");
}

BOOST_AUTO_TEST_CASE(frames_that_are_renamed_alike_are_one) {
  const auto rename = [](std::string_view frame) { return std::string(frame.substr(0, 1)); };
  BOOST_TEST(text_of(union_of({{0, "f.cold;g1", 1}, {1, "f;g2", 2}, {1, "f;g2;h", 4}}, 2,
                              rename)) == " 1/0 6/0\n f 1/0 6/0\n  g 1/1 6/2\n   h 0/0 4/4\n");
}

BOOST_AUTO_TEST_CASE(finds_the_frames_of_later_profiles_in_any_order) {
  const auto cut = [](std::string_view frame) { return std::string(frame.substr(0, 1)); };
  const ProfileUnion all = union_of({{0, "a1;b1", 1},
                                     {0, "a1;c1", 2},
                                     {0, "d1", 3},
                                     {1, "a1;b1", 4},
                                     {1, "a1;c2", 5},
                                     {1, "d1", 6},
                                     {2, "d1", 7},
                                     {2, "a1;c1", 8},
                                     {2, "a1;b2", 9}},
                                    3, cut);
  BOOST_TEST(text_of(all) ==
             " 6/0 15/0 24/0\n"
             " a 3/0 9/0 17/0\n"
             "  b 1/1 4/4 9/9\n"
             "  c 2/2 5/5 8/8\n"
             " d 3/3 6/6 7/7\n");
}

BOOST_AUTO_TEST_CASE(functions_count_recursion_once) {
  const ProfileUnion all = union_of({{0, "f;g;f", 2}, {0, "g;f", 3}, {1, "f", 5}}, 2);
  const auto first =
      painting::function_counts(all.tree, all.profiles[0].self, all.profiles[0].total);
  const auto second =
      painting::function_counts(all.tree, all.profiles[1].self, all.profiles[1].total);
  std::uint32_t f = 0;
  while (all.tree.name_text(f) != "f")
    ++f;
  BOOST_TEST(first.self[f].whole == 5U);
  BOOST_TEST(first.total[f].whole == 5U);
  BOOST_TEST(second.total[f].whole == 5U);
}

BOOST_AUTO_TEST_CASE(a_weighed_tree_has_only_what_has_weight) {
  const ProfileUnion all = union_of(kTwo, 2);
  const auto after =
      Weigher::weigh(all.tree, {.self = self_of(all, 1), .aside = {}, .aside_name = ""});
  BOOST_TEST(testing::drawn(after.tree) == " 9/0\n main 9/0\n  kept 7/7\n  new 2/2\n");
  BOOST_TEST(after.aside == kRoot);
  for (NodeId node = 0; node < after.tree.size(); ++node)
    BOOST_TEST(after.tree.name(node) == all.tree.name(after.origin[node]));
}

BOOST_AUTO_TEST_CASE(what_stands_aside_has_its_whole_stack) {
  const ProfileUnion all = union_of(kTwo, 2);
  std::vector<Count> aside(all.tree.size());
  aside[5] = {.whole = 3};  // deep
  const auto after =
      Weigher::weigh(all.tree, {.self = self_of(all, 1), .aside = aside, .aside_name = "[gone]"});
  BOOST_TEST(testing::drawn(after.tree) ==
             " 12/0\n main 9/0\n  kept 7/7\n  new 2/2\n [gone] 3/0\n  main 3/0\n   old 3/0\n    "
             "deep 3/3\n");
  BOOST_TEST(after.tree.name(after.aside) == "[gone]");
  BOOST_TEST(after.tree.parent(after.aside + 1) == after.aside);
}

BOOST_AUTO_TEST_CASE(deep_stacks_do_not_recurse) {
  std::string deep = "f";
  for (int i = 0; i < 100'000; ++i)
    deep += ";f";
  const ProfileUnion all = union_of({{0, deep.c_str(), 1}, {1, "f;g", 1}}, 2);
  BOOST_TEST(all.tree.size() == 100'003U);
  const auto both = Weigher::weigh(
      all.tree, {.self = self_of(all, 1), .aside = self_of(all, 0), .aside_name = "[gone]"});
  BOOST_TEST(both.tree.total(kRoot).whole == 2U);
  BOOST_TEST(both.tree.size() == 3U + 1U + 100'001U);
  const auto functions =
      painting::function_counts(all.tree, all.profiles[0].self, all.profiles[0].total);
  BOOST_TEST(functions.total[all.tree.name_id(1)].whole == 1U);
}

BOOST_AUTO_TEST_CASE(totals_are_conserved_whatever_comes_in) {
  std::mt19937 random(11);  // NOLINT: the same profiles every time
  for (int round = 0; round < 50; ++round) {
    TreeBuilder builder;
    std::uint64_t sums[2] = {};
    for (unsigned lines = random() % 200; lines > 0; --lines) {
      std::string stack;
      for (unsigned frames = random() % 8 + 1; frames > 0; --frames)
        stack += fmt::format("{}f{}", stack.empty() ? "" : ";", random() % 4);
      const std::size_t profile = random() % 2;
      const std::uint64_t count = random() % 100;
      sums[profile] += count;
      builder.add_to(profile, stack, {.whole = count});
    }
    const ProfileUnion all = std::move(builder).finish_union(2);
    BOOST_TEST(all.profiles[0].total[kRoot].whole == sums[0]);
    BOOST_TEST(all.profiles[1].total[kRoot].whole == sums[1]);
    const auto both = Weigher::weigh(
        all.tree, {.self = self_of(all, 1), .aside = self_of(all, 0), .aside_name = "[gone]"});
    BOOST_TEST(both.tree.total(kRoot).whole == sums[0] + sums[1]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
