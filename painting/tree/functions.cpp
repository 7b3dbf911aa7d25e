// SPDX-License-Identifier: MIT
#include "painting/tree/functions.h"

namespace pe::painting {

FunctionCounts function_counts(const CallTree& tree, std::span<const Count> self,
                               std::span<const Count> total) {
  FunctionCounts counts{.self = std::vector<Count>(tree.name_count()),
                        .total = std::vector<Count>(tree.name_count())};
  const auto name_of = [&tree](NodeId node) { return tree.name_id(node); };
  for_each_outermost(tree, tree.name_count(), name_of, [&](NodeId node) {
    static_cast<void>(counts.total[name_of(node)].add(total[node]));
  });
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot + 1; node < nodes; ++node)
    static_cast<void>(counts.self[name_of(node)].add(self[node]));
  return counts;
}

}  // namespace pe::painting
