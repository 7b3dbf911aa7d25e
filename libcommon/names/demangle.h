// Readable names: C++ (Itanium ABI), Rust (legacy and v0) and D, through libiberty.
//
// Names come from files that others wrote.  A short one can stand for
// gigabytes, or keep libiberty busy for years; both are refused, see demangle.cpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe::names {

inline constexpr std::size_t kMaxMangledBytes = 8 * 1024;
inline constexpr std::size_t kMaxDemangledBytes = 16 * 1024;

/// The name as perf shows it: `ns::f<int>`, with template arguments, without
/// parameters and return type, without Rust's hash.
///
/// What a compiler added for a clone stays as it stands, "ns::f.cold" (perf drops
/// it from C++ names and keeps it in C's), but ".llvm.123", which only makes a
/// local name unique, is dropped.  So does what follows '@': "operator new@plt".
/// Anything else comes back unchanged: what is not mangled, longer than
/// kMaxMangledBytes, would exceed kMaxDemangledBytes, or costs too much.
std::string demangle(std::string_view mangled);

}  // namespace pe::names
