// Estimates the cost of demangling a name before it is tried.  Private to names/.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

struct demangle_component;

namespace pe::names {

/// Whether printing a C++ name's parse tree takes little time and stack.  `memory` is the block of
/// the tree, as cplus_demangle_v3_components() returned it; `bytes` is its size.
bool is_cheap_to_print(const demangle_component& tree, const void* memory, std::size_t bytes);

/// Whether all binder numbers of a Rust name are as small as those that compilers write.
bool is_cheap_rust(std::string_view mangled);

/// Whether libiberty parses and prints a D name in little time.
bool is_cheap_d(std::string_view mangled);

}  // namespace pe::names
