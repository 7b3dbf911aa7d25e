// Groups stacks by thread, by program or by module.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"

namespace pe::stacktop {

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
