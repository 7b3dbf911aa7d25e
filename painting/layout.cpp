// SPDX-License-Identifier: MIT
#include "painting/layout.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pe::painting {
namespace {

using folded::Count;

/// A drawn node whose children are being placed.
struct Open {
  NodeId subtree_end;
  Count next_start;  ///< of its next child
  double right;
};

Count sum(Count a, Count b) {
  // Saturates: the tree's saturated() reports it, and edges are clamped to the parent's.
  static_cast<void>(a.add(b));
  return a;
}

/// Returns the smallest count that is drawn.
double smallest_drawn(const LayoutRequest& request, double total) {
  const MinWidth& min = request.min_width;
  return min.is_percent ? total * min.value / 100 : min.value * total / request.usable_width;
}

Count whole_width(const CallTree& tree, const LayoutRequest& request) {
  const Count total = tree.total(kRoot);
  return request.total ? std::max(*request.total, total) : total;
}

}  // namespace

Layout lay_out(const CallTree& tree, const LayoutRequest& request) {
  const Count whole = whole_width(tree, request);
  const double smallest = smallest_drawn(request, whole.as_double());
  const double pixels_per_count = request.usable_width / whole.as_double();
  constexpr double kLeft = Geometry::kSideMargin;

  Layout layout{.boxes = {}, .levels = 0, .towers = {}, .whole = whole};
  const double right = kLeft + request.usable_width;
  layout.boxes.push_back(
      {.node = kRoot, .depth = 0, .start = {}, .count = whole, .left = kLeft, .right = right});
  const auto nodes = static_cast<NodeId>(tree.size());
  std::vector<Open> open{{.subtree_end = nodes, .next_start = tree.self(kRoot), .right = right}};
  std::size_t levels = 1;
  for (NodeId node = kRoot + 1; node < nodes;) {
    while (open.back().subtree_end <= node)
      open.pop_back();
    Open& above = open.back();
    const Count start = tree.has_starts() ? tree.start(node) : above.next_start;
    const Count count = tree.total(node);
    above.next_start = sum(start, count);
    if (count.as_double() < smallest || count.is_zero()) {
      node = tree.subtree_end(node);
      continue;
    }
    const auto edge = [&](Count at) {
      return std::min(kLeft + at.as_double() * pixels_per_count, above.right);
    };
    const Box box{.node = node,
                  .depth = static_cast<std::uint32_t>(open.size()),
                  .start = start,
                  .count = count,
                  .left = edge(start),
                  .right = edge(above.next_start)};
    layout.boxes.push_back(box);
    open.push_back({.subtree_end = tree.subtree_end(node),
                    .next_start = sum(start, tree.self(node)),
                    .right = box.right});
    levels = std::max(levels, open.size());
    ++node;
  }
  layout.levels = static_cast<std::uint32_t>(levels);
  return layout;
}

std::uint32_t cut_towers(Layout& layout, std::uint32_t levels) {
  if (layout.levels <= levels)
    return 0;
  const std::uint32_t last = levels - 1;
  std::vector<Box>& boxes = layout.boxes;
  std::size_t kept = 0;
  for (std::size_t at = 0; at < boxes.size();) {
    const Box box = boxes[at++];
    std::uint32_t deepest = box.depth;
    if (box.depth == last)
      for (; at < boxes.size() && boxes[at].depth > last; ++at)
        deepest = std::max(deepest, boxes[at].depth);
    if (deepest > last)
      layout.towers.push_back({.left = box.left, .right = box.right, .rows = deepest - last});
    else
      boxes[kept++] = box;
  }
  boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(kept), boxes.end());
  return std::exchange(layout.levels, levels) - levels;
}

}  // namespace pe::painting
