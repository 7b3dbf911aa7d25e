// The methods that a HotSpot JVM has compiled into one piece of code, inlined ones too.
//
// A table of PcDesc, by offset in the code, leads into a stream of compressed integers: for each
// method at that place where its caller is described, its number among the code's metadata, and the
// bytecode that it executes, plus one.  The JVM describes the places of calls and of its other safe
// points.  Between them, the next one is used, as the JVM itself does; there, which of the inlined
// methods executes is a guess, while the method that inlines them is right.
//
// Sources: OpenJDK, src/hotspot/share/code/pcDesc.hpp, scopeDesc.cpp, debugInfo.hpp; nmethod.cpp
// (find_pc_desc).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "languages/common/memory.h"
#include "languages/java/code_cache.h"
#include "languages/java/layout.h"

namespace pe::languages {

/// A method at a place in compiled code.
struct Scope {
  std::uint64_t method = 0;    ///< avma of the Method
  std::uint32_t bytecode = 0;  ///< offset of the bytecode that it executes
  bool operator==(const Scope&) const = default;
};

/// Returns the methods at `avma` in compiled code, the innermost first.  There is always one: the
/// code's own method.  `avma` is a return address, or an address that is executed.
std::vector<Scope> scopes_at(Memory& memory, const HotspotLayout& layout, const CodeBlob& blob,
                             std::uint64_t avma);

/// More methods than that, inlined into each other, are cut at the root.
inline constexpr std::size_t kMostScopes = 256;

}  // namespace pe::languages
