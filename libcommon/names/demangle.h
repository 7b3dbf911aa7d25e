// Demangles C++ (Itanium ABI), Rust (legacy and v0) and D symbols with libiberty.
//
// Symbols come from untrusted files.  A short symbol can represent gigabytes, or
// keep libiberty busy for years; both are refused, see demangle.cpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Estimates the cost of demangling a name before it is tried.  Private to names/.

struct demangle_component;

namespace pe::names {

/// Whether printing a C++ name's parse tree takes little time and stack.  `memory` is the block of
/// the tree, as cplus_demangle_v3_components() returned it; `bytes` is its size.
bool is_cheap_to_print(const demangle_component& tree, const void* memory, std::size_t bytes);

/// Whether all binder numbers of a Rust name are as small as those that compilers write.
bool is_cheap_rust(std::string_view mangled);

/// Whether libiberty parses and prints a D name in little time.
bool is_cheap_d(std::string_view mangled);

inline constexpr std::size_t kMaxMangledBytes = 8 * 1024;
inline constexpr std::size_t kMaxDemangledBytes = 16 * 1024;

/// Returns the name as perf shows it: `ns::f<int>`, with template arguments, without
/// parameters and return type, without Rust's hash.
///
/// The suffix of a clone stays unchanged, as in "ns::f.cold" (perf drops it from C++
/// names and keeps it in C's).  Text after '@' stays as well: "operator new@plt".
/// ".llvm.123" is dropped, because it only makes a local name unique.  A name is
/// returned unchanged if it is not mangled, is longer than kMaxMangledBytes, would
/// exceed kMaxDemangledBytes, or costs too much.
std::string demangle(std::string_view mangled);

/// Returns the name as c++filt(1) prints it: `int ns::f<int>(char)`, with parameters, and the
/// return type of a template.  Empty if demangle() would return the name unchanged, and for Rust
/// and D.
std::string demangle_with_parameters(std::string_view mangled);

}  // namespace pe::names
