// Builds the hierarchy of a function's callees or callers, over all places where it is called, as
// an indented tree with cut-offs.
//
// Equal functions with the same parent line are one line.  Lines below the cut-off are not
// expanded, so the cost depends only on the lines shown.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::stacktop {

// Finds callers and callees of some functions, in the sense of perf.
//
// A stack counts once.  Its caller is that of the outermost call, and its callee is that of the
// innermost call.  Callers therefore add up to the functions' total, and so do callees together
// with the functions' own counts.

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

enum class Direction { kCallees, kCallers };

struct Cutoff {
  double share = 0.005;        ///< of the whole profile; lines with less are left out
  std::uint32_t levels = 128;  ///< below the function itself, 1 or more
};

struct HierarchyLine {
  std::uint32_t name;  ///< name_id()
  std::uint32_t depth;
  painting::Count self, total;  ///< self: 0 among callers
  /// The text drawn before the name: "|  `- ".  The lines of a chain have the same indentation, and
  /// so do very deep branches: it has at most 200 bytes.
  std::string branch;
};

struct Hierarchy {
  std::vector<HierarchyLine> lines;
  std::uint64_t deeper = 0;  ///< lines at the greatest depth that would have lines below
};

/// The first line is for all `tops` together and has the name of the first of them.  Returns no
/// lines if `tops` is empty.  Lines below the same line are sorted, the largest first.  `tops` must
/// be the result of outermost().
Hierarchy hierarchy(const painting::CallTree& tree, const std::vector<painting::NodeId>& tops,
                    Direction direction, const Cutoff& cutoff);

// Groups stacks by thread, by program or by module.

enum class By { kComm, kThread, kModule };

/// The group of every node.
struct Groups {
  std::vector<std::uint32_t> of_node;  ///< index into names
  std::vector<std::string> names;
};

/// The group of frames whose text does not contain their module.
inline constexpr std::string_view kNoModule = "[module not in the text]";

/// Returns the name of a thread without the numbers that `stackfold --pid` and `--tid` append:
/// "java" for "java-12" and "java-12/13".  Such a number is also removed if it is part of the
/// thread's own name, so the threads of a pool are one group.
std::string_view comm_of(std::string_view root_frame);

/// Returns the module that the text of a frame contains: "libc.so.6+0x1f", "[libc.so.6 <7f12>]",
/// "name [module]", "module`name" or "[unknown]".  A mark gives only the kind of module:
/// "[kernel]", "[jit]" or "[library]".  nullopt for an inlined function, which is in the module of
/// its caller.
std::optional<std::string_view> module_of(std::string_view frame);

Groups group(const painting::CallTree& tree, By by);

}  // namespace pe::stacktop
