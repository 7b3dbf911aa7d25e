// Adds up a profile by function: own counts, and counts with all callees.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::painting {

/// Indexed by name_id().
struct FunctionCounts {
  std::vector<Count> self;
  std::vector<Count> total;  ///< a recursive function counts once
};

/// `self` and `total` are counts by node, of this or another profile of the same shape.  The root
/// is not a function.  Sums that do not fit stay at Count::max().
FunctionCounts function_counts(const CallTree& tree, std::span<const Count> self,
                               std::span<const Count> total);

}  // namespace pe::painting
