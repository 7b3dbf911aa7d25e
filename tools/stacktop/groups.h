// Stacks by where they belong: to a thread, a program, a module.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "picture/tree/call_tree.h"

namespace pe::stacktop {

enum class By { kComm, kThread, kModule };

/// A group for every node.
struct Groups {
  std::vector<std::uint32_t> of_node;  ///< index into names
  std::vector<std::string> names;
};

/// Of frames whose text does not tell their module.
inline constexpr std::string_view kNoModule = "[module not in the text]";

/// The name of a thread without the numbers that `stackfold --pid` and `--tid` put behind it:
/// "java" for "java-12" and "java-12/13".  A name that ends in a number of its own loses it as
/// well, so the threads of a pool are one.
std::string_view comm_of(std::string_view root_frame);

/// The module that the text of a frame names: by "libc.so.6+0x1f", "[libc.so.6 <7f12>]", "name
/// [module]", "module`name", "[unknown]", or by a mark what kind of module it is: "[kernel]",
/// "[jit]", "[library]". nullopt for an inlined function, which is where its caller is.
std::optional<std::string_view> module_of(std::string_view frame);

Groups group(const picture::CallTree& tree, By by);

}  // namespace pe::stacktop
