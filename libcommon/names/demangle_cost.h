// What demangling a name would cost, known before it is tried.  Private to symbols/.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

struct demangle_component;

namespace pe::names {

/// Whether printing a C++ name's parse tree takes little time and stack.  `memory` is the tree's,
/// as cplus_demangle_v3_components() returned it; `bytes` is its size.
bool is_cheap_to_print(const demangle_component& tree, const void* memory, std::size_t bytes);

/// Whether a Rust name counts only to what a compiler would write.
bool is_cheap_rust(std::string_view mangled);

/// Whether a D name is parsed and printed in little time.
bool is_cheap_d(std::string_view mangled);

}  // namespace pe::names
