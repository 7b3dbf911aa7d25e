// A profile by function: what each counted by itself, and with all that it called.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "picture/tree/call_tree.h"

namespace pe::picture {

/// By number of the name.
struct FunctionCounts {
  std::vector<Count> self;
  std::vector<Count> total;  ///< a recursive function counts once
};

/// `self` and `total` are those of the tree's nodes, of this or another profile of the same shape;
/// the root is no function.  Sums that do not fit stay at Count::max().
FunctionCounts function_counts(const CallTree& tree, std::span<const Count> self,
                               std::span<const Count> total);

}  // namespace pe::picture
