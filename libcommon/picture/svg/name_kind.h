// What a frame's name tells about the code: by its mark, and by how it is written.
//
// Heuristics: a C++ function in a namespace `org` is not taken for Java, but a C
// function named `0xbeef` or `mod+0x1` would be taken for an address.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "picture/svg/colors.h"

namespace pe::picture {

enum class NameKind { kUser, kKernel, kJit, kInlined, kLibrary, kUnresolved };

/// Unresolved are "[...]", bare hexadecimal numbers and "module+0x...", whatever their mark.
NameKind kind_of_name(std::string_view name);

/// For palettes that look at names (java, js, perl, wakeup, chain, hotcold), the plain
/// palette that `name` gets; any other palette is returned as it is.
Palette hue_of_name(Palette palette, std::string_view name);

}  // namespace pe::picture
