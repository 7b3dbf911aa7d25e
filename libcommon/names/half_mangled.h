// Rust names that a C++ demangler took apart, as old perf, DTrace and macOS sample print them:
//
//   _$LT$std..fs..ReadDir$u20$as$u20$core..iter..Iterator$GT$::next::h0123456789abcdef
//
// A path's elements were separated, but the escapes within them and the hash at the end are left.
// Source: the Rust compiler's legacy mangling (rustc_symbol_mangling::legacy).
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::names {

/// Does the name end in the hash of a Rust function, "::h" and 16 hexadecimal digits?  A C++
/// demangler may have put " (.llvm.123)" behind it.
bool is_half_mangled(std::string_view name);

/// The name as demangle() writes that of a whole symbol: "<std::fs::ReadDir as
/// core::iter::Iterator>::next".  A name that is not half mangled comes back as it is; an unknown
/// escape stays.
std::string demangle_half_mangled(std::string_view name);

}  // namespace pe::names
