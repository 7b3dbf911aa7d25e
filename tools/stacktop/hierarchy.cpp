// SPDX-License-Identifier: MIT
#include "stacktop/hierarchy.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string_view>
#include <utility>

namespace pe::stacktop {
namespace {

using painting::CallTree;
using painting::Count;
using painting::kRoot;
using painting::NodeId;

/// Branches with a larger indentation are not indented further.
constexpr std::size_t kMaxIndentBytes = 120;

/// A line, the nodes that it represents, and the text before the lines below it.
struct Item {
  struct Part {
    NodeId node;
    Count count;
  };
  HierarchyLine line;
  std::vector<Part> parts;
  std::string below;
};

class Grower {
 public:
  Grower(const CallTree& tree, Direction direction, const Cutoff& cutoff)
      : tree_(tree),
        direction_(direction),
        cutoff_(cutoff),
        fewest_(tree.total(kRoot).as_double() * cutoff.share) {}

  Item top(const std::vector<NodeId>& nodes) {
    Item item{.line = {.name = tree_.name_id(nodes.front()),
                       .depth = 0,
                       .self = {},
                       .total = {},
                       .branch = {}},
              .parts = {},
              .below = {}};
    for (const NodeId node : nodes)
      add(node, tree_.total(node), item);
    return item;
  }

  [[nodiscard]] std::uint64_t deeper() const noexcept { return deeper_; }

  /// Returns the lines directly below `item`, the largest first; none at the greatest depth.
  std::vector<Item> next(const Item& item) {
    std::vector<Item> found;
    group(item, found);
    std::erase_if(found, [&](const Item& below) {
      return below.line.total.is_zero() || below.line.total.as_double() < fewest_;
    });
    if (item.line.depth >= cutoff_.levels) {
      deeper_ += found.empty() ? 0 : 1;
      return {};
    }
    std::sort(found.begin(), found.end(), [&](const Item& a, const Item& b) {
      if (a.line.total != b.line.total)
        return a.line.total > b.line.total;
      return tree_.name_text(a.line.name) < tree_.name_text(b.line.name);
    });
    for (Item& below : found)
      draw(item, found.size() == 1, &below == &found.back(), below);
    return found;
  }

 private:
  void add(NodeId node, Count count, Item& item) {
    item.parts.push_back({.node = node, .count = count});
    static_cast<void>(item.line.total.add(count));  // saturated only if CallTree::saturated() is
    if (direction_ == Direction::kCallees)
      static_cast<void>(item.line.self.add(tree_.self(node)));
  }

  void group(const Item& item, std::vector<Item>& found) {
    boost::unordered_flat_map<std::uint32_t, std::size_t> index;  // by name, in `found`
    const auto take = [&](NodeId node, Count count) {
      const std::uint32_t name = tree_.name_id(node);
      const auto [at, is_new] = index.try_emplace(name, found.size());
      if (is_new)
        found.push_back({.line = {.name = name,
                                  .depth = item.line.depth + 1,
                                  .self = {},
                                  .total = {},
                                  .branch = {}},
                         .parts = {},
                         .below = {}});
      add(node, count, found[at->second]);
    };
    for (const auto& [node, count] : item.parts) {
      if (direction_ == Direction::kCallers) {
        if (tree_.parent(node) != kRoot)
          take(tree_.parent(node), count);
        continue;
      }
      for (NodeId c = node + 1; c < tree_.subtree_end(node); c = tree_.subtree_end(c))
        take(c, tree_.total(c));
    }
  }

  static void draw(const Item& above, bool is_only, bool is_last, Item& below) {
    const bool continues_chain = is_only && above.line.depth > 0;
    below.line.branch = below.below = above.below;
    if (continues_chain || above.below.size() >= kMaxIndentBytes)
      return;
    below.line.branch += is_last ? "`- " : "|- ";
    below.below += is_last ? "   " : "|  ";
  }

  const CallTree& tree_;
  Direction direction_;
  Cutoff cutoff_;
  double fewest_;
  std::uint64_t deeper_ = 0;
};

}  // namespace

Hierarchy hierarchy(const CallTree& tree, const std::vector<NodeId>& tops, Direction direction,
                    const Cutoff& cutoff) {
  if (tops.empty())
    return {};
  std::vector<HierarchyLine> lines;
  Grower grower(tree, direction, cutoff);
  std::vector<Item> pending;
  pending.push_back(grower.top(tops));
  while (!pending.empty()) {
    const Item item = std::move(pending.back());
    pending.pop_back();
    lines.push_back(item.line);
    std::vector<Item> next = grower.next(item);
    std::move(next.rbegin(), next.rend(), std::back_inserter(pending));
  }
  return {std::move(lines), grower.deeper()};
}

}  // namespace pe::stacktop
