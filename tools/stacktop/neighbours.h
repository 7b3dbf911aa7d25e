// Finds callers and callees of some functions, in the sense of perf.
//
// A stack counts once.  Its caller is that of the outermost call, and its callee is that of the
// innermost call.  Callers therefore add up to the functions' total, and so do callees together
// with the functions' own counts.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::stacktop {

/// Indexed by name_id(): true if the name is one of the functions.
using Members = std::vector<bool>;

struct Neighbours {
  std::vector<painting::Count> by_name;  ///< by name_id()
  painting::Count none;  ///< of stacks in which the functions have no caller, or no callee
};

Neighbours callers(const painting::CallTree& tree, const Members& members);
Neighbours callees(const painting::CallTree& tree, const Members& members);

/// Returns the nodes of members that are not below another such node.
std::vector<painting::NodeId> outermost(const painting::CallTree& tree, const Members& members);

}  // namespace pe::stacktop
