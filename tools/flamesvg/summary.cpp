// SPDX-License-Identifier: MIT
#include "flamesvg/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "painting/numbers.h"
#include "painting/svg/colors.h"
#include "painting/tree/functions.h"

namespace pe::flamesvg {
namespace {

using painting::CallTree;
using painting::grouped_count;
using painting::kRoot;
using painting::NodeId;

/// Returns the number of nodes with own counts.
std::uint64_t stacks_of(const CallTree& tree) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(tree.selves(), [](folded::Count count) { return !count.is_zero(); }));
}

/// Returns the totals of the root's children, by name_id().
std::vector<folded::Count> totals_on_root(const CallTree& tree) {
  std::vector<folded::Count> totals(tree.name_count());
  for (NodeId node = kRoot + 1; node < tree.size(); node = tree.subtree_end(node))
    static_cast<void>(totals[tree.name_id(node)].add(tree.total(node)));
  return totals;
}

/// Formats "1,234 stacks".
std::string grouped_plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped_count({.whole = count}, 1), noun, count == 1 ? "" : "s");
}

/// Formats "a 50.00%, b 25.00%", the largest first, equal ones by name.
std::string largest(const CallTree& tree, const std::vector<folded::Count>& of_names,
                    double whole) {
  constexpr std::size_t kShown = 5;
  std::vector<std::uint32_t> order(of_names.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto shown = order.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, of_names.size()));
  std::partial_sort(order.begin(), shown, order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return of_names[a] != of_names[b] ? of_names[a] > of_names[b]
                                      : tree.name_text(a) < tree.name_text(b);
  });
  std::string text;
  for (auto name = order.begin(); name != shown && !of_names[*name].is_zero(); ++name)
    text += fmt::format("{}{} {:.2f}%", text.empty() ? "" : ", ",
                        painting::without_mark(tree.name_text(*name)),
                        100 * of_names[*name].as_double() / whole);
  return text;
}

}  // namespace

std::string summary_text(const CallTree& tree, folded::Count whole, const Options& options) {
  painting::FunctionCounts functions =
      painting::function_counts(tree, tree.selves(), tree.totals());
  if (options.reverse)  // the function that ran is the root's child
    functions.self = totals_on_root(tree);
  return fmt::format("{} {} in {}, {}. Largest self: {}. Largest total: {}.",
                     grouped_count(tree.total(kRoot), options.factor), options.page.count_name,
                     grouped_plural(stacks_of(tree), "stack"),
                     grouped_plural(tree.size() - 1, "frame"),
                     largest(tree, functions.self, whole.as_double()),
                     largest(tree, functions.total, whole.as_double()));
}

}  // namespace pe::flamesvg
