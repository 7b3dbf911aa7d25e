// Who calls some functions, and whom they call: what perf calls callers and callees.
//
// A stack counts once.  Its caller is that of the outermost call, its callee that of the innermost:
// so callers add up to the functions' total, callees and their own counts as well.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "calltree/call_tree.h"

namespace pe::stacktop {

/// By name_id(): is it one of the functions?
using Members = std::vector<bool>;

struct Neighbours {
  std::vector<calltree::Count> by_name;  ///< by name_id()
  calltree::Count none;  ///< of stacks in which the functions are called by none, or call none
};

Neighbours callers(const calltree::CallTree& tree, const Members& members);
Neighbours callees(const calltree::CallTree& tree, const Members& members);

/// The nodes of members that are not below another.
std::vector<calltree::NodeId> outermost(const calltree::CallTree& tree, const Members& members);

}  // namespace pe::stacktop
