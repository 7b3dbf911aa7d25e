// Who calls some functions, and whom they call: what perf calls callers and callees.
//
// A stack counts once.  Its caller is that of the outermost call, its callee that of the innermost:
// so callers add up to the functions' total, callees and their own counts as well.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "picture/tree/call_tree.h"

namespace pe::stacktop {

/// By name_id(): is it one of the functions?
using Members = std::vector<bool>;

struct Neighbours {
  std::vector<picture::Count> by_name;  ///< by name_id()
  picture::Count none;  ///< of stacks in which the functions are called by none, or call none
};

Neighbours callers(const picture::CallTree& tree, const Members& members);
Neighbours callees(const picture::CallTree& tree, const Members& members);

/// The nodes of members that are not below another.
std::vector<picture::NodeId> outermost(const picture::CallTree& tree, const Members& members);

}  // namespace pe::stacktop
