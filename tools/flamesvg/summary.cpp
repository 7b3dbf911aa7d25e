// SPDX-License-Identifier: MIT
#include "flamesvg/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "flamesvg/draw.h"

namespace pe::flamesvg {
namespace {

using calltree::CallTree;
using calltree::kRoot;
using calltree::NodeId;

/// By number of the name.
struct Shares {
  std::vector<double> self, total;
  std::uint64_t stacks = 0;  ///< nodes that something was counted in
};

Shares shares_of(const CallTree& tree) {
  struct Open {
    NodeId subtree_end;
    std::uint32_t name;
  };
  Shares shares{.self = std::vector<double>(tree.name_count()),
                .total = std::vector<double>(tree.name_count())};
  std::vector<std::uint32_t> open_calls(tree.name_count());
  std::vector<Open> open;
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot; node < nodes; ++node) {
    while (!open.empty() && open.back().subtree_end <= node) {
      --open_calls[open.back().name];
      open.pop_back();
    }
    const folded::Count self = tree.self(node);
    shares.stacks += self.is_zero() ? 0 : 1;
    if (node == kRoot)
      continue;
    const std::uint32_t name = tree.name_id(node);
    shares.self[name] += self.as_double();
    if (open_calls[name]++ == 0)
      shares.total[name] += tree.total(node).as_double();
    open.push_back({.subtree_end = tree.subtree_end(node), .name = name});
  }
  return shares;
}

/// By number of the name: the totals of the root's children.
std::vector<double> totals_on_root(const CallTree& tree) {
  std::vector<double> totals(tree.name_count());
  for (NodeId node = kRoot + 1; node < tree.size(); node = tree.subtree_end(node))
    totals[tree.name_id(node)] += tree.total(node).as_double();
  return totals;
}

/// "1,234 stacks".
std::string grouped_plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped_count({.whole = count}, 1), noun, count == 1 ? "" : "s");
}

/// "a 50.00%, b 25.00%": the largest first, equal ones by name.
std::string largest(const CallTree& tree, const std::vector<double>& of_names, double whole) {
  constexpr std::size_t kShown = 5;
  std::vector<std::uint32_t> order(of_names.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto shown = order.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, of_names.size()));
  std::partial_sort(order.begin(), shown, order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return of_names[a] != of_names[b] ? of_names[a] > of_names[b]
                                      : tree.name_text(a) < tree.name_text(b);
  });
  std::string text;
  for (auto name = order.begin(); name != shown && of_names[*name] > 0; ++name)
    text += fmt::format("{}{} {:.2f}%", text.empty() ? "" : ", ",
                        svg::without_mark(tree.name_text(*name)), 100 * of_names[*name] / whole);
  return text;
}

}  // namespace

std::string summary_text(const CallTree& tree, folded::Count whole, const Options& options) {
  Shares shares = shares_of(tree);
  if (options.reverse)  // what ran stands on the root
    shares.self = totals_on_root(tree);
  return fmt::format("{} {} in {}, {}. Largest by themselves: {}. Largest with what they call: {}.",
                     grouped_count(tree.total(kRoot), options.factor), options.page.count_name,
                     grouped_plural(shares.stacks, "stack"),
                     grouped_plural(tree.size() - 1, "frame"),
                     largest(tree, shares.self, whole.as_double()),
                     largest(tree, shares.total, whole.as_double()));
}

}  // namespace pe::flamesvg
