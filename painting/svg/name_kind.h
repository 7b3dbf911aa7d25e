// Infers the kind of code from a frame's name: from its mark and its spelling.
//
// These are heuristics: they do not mistake a C++ function in a namespace `org` for Java, but
// would mistake a C function named `0xbeef` or `mod+0x1` for an address.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "painting/svg/colors.h"

namespace pe::painting {

enum class NameKind { kUser, kKernel, kJit, kInlined, kLibrary, kScript, kUnresolved };

/// Names "[...]", bare hexadecimal numbers and "module+0x..." are unresolved, whatever their mark.
NameKind kind_of_name(std::string_view name);

/// For palettes that depend on names (java, js, perl, wakeup, chain, hotcold), returns the plain
/// palette for `name`.  Returns any other palette unchanged.
Palette hue_of_name(Palette palette, std::string_view name);

}  // namespace pe::painting
