// Reads back the profile that the page of a flame graph carries (painting/embed.h).
//
// Frames too small for the page are counted in [others], as in the text that the page copies.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "folded/facts.h"
#include "painting/read_page.h"
#include "stackfold/formats/readers.h"
#include "stackfold/gzip.h"

namespace pe::fold::flamegraph {
namespace {

constexpr std::size_t kMostBytes = std::size_t{512} << 20U;

/// Converts multiples of 10^-decimals.
class Units {
 public:
  explicit Units(unsigned decimals) {
    for (; decimals > 0; --decimals)
      per_one_ *= 10;
  }

  [[nodiscard]] folded::Count count(std::uint64_t units) const {
    return {.whole = units / per_one_,
            .billionths =
                static_cast<std::uint32_t>(units % per_one_ * (folded::Count::kOne / per_one_))};
  }

 private:
  std::uint64_t per_one_ = 1;
};

std::vector<folded::FrameId> frames_of_names(const painting::PageTree& tree,
                                             folded::FrameTable& frames) {
  std::vector<folded::FrameId> ids{frames.intern("[others]")};
  ids.reserve(tree.names.size());
  for (std::size_t name = 1; name < tree.names.size(); ++name) {
    std::string text(tree.names[name]);  // of an edited page, any text
    std::ranges::replace_if(
        text, [](char c) { return c == ';' || static_cast<unsigned char>(c) < ' '; }, ' ');
    ids.push_back(frames.intern(text));
  }
  return ids;
}

std::uint64_t add_stacks(const painting::PageTree& tree, folded::FoldedCounts& counts) {
  const std::vector<folded::FrameId> ids = frames_of_names(tree, counts.frames());
  const Units units(tree.decimals);
  std::vector<folded::FrameId> path, reversed;
  std::uint64_t stacks = 0;
  for (const painting::PageTree::Node& node : tree.nodes) {
    if (node.depth == 0)  // its own count is that of stacks without frames
      continue;
    path.resize(node.depth);
    path.back() = ids[node.name];
    if (node.self == 0)
      continue;
    ++stacks;
    if (tree.is_reversed)
      reversed.assign(path.rbegin(), path.rend());
    counts.add(tree.is_reversed ? reversed : path, units.count(node.self));
  }
  return stacks;
}

/// Describes what the output lacks; empty if it lacks nothing.
std::string describe_loss(const painting::PageTree& tree) {
  std::string text;
  if (tree.left_out > 0)
    text = fmt::format("{} with fewer than {} counts each are too small for the page: [others]",
                       plural(tree.left_out, "frame"),
                       folded::to_text(Units(tree.decimals).count(tree.smallest)));
  if (tree.folds_recursion)
    text += std::string(text.empty() ? "" : "; ") + "recursive calls are one frame";
  return text;
}

std::string facts_of(const painting::PageProfile& profile) {
  folded::Facts facts;
  std::string text;
  bool has_unit = false;
  for (const auto& [key, value] : profile.facts) {
    if (!facts.take("# " + key + ": " + value))
      continue;
    has_unit = has_unit || key == "unit";
    folded::append_fact(text, key, value);
  }
  if (!has_unit && profile.count_name != "samples")
    folded::append_fact(text, "unit", profile.count_name);
  return text;
}

}  // namespace

bool looks_like(std::string_view head) { return painting::looks_like_page(head); }

TextReport fold(Input& input, const Options& /*options*/, folded::FoldedCounts& counts) {
  TextReport report;
  std::string damage;
  const std::string page = read_unpacked(input, kMostBytes, damage);
  const painting::PageProfile profile = painting::read_page(page);
  report.damage = damage.empty() ? profile.problem : damage;
  if (!profile.tree)
    return report;
  if (profile.tree->is_comparison) {
    report.damage = "a comparison of two profiles (use one of these)";
    return report;
  }
  report.samples = add_stacks(*profile.tree, counts);
  report.is_empty_profile = report.samples == 0;
  report.left_out = describe_loss(*profile.tree);
  report.facts = facts_of(profile);
  return report;
}

}  // namespace pe::fold::flamegraph
