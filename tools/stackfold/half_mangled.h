// Decodes Rust names that a C++ demangler has processed, as old perf, DTrace and macOS sample print
// them:
//
//   _$LT$std..fs..ReadDir$u20$as$u20$core..iter..Iterator$GT$::next::h0123456789abcdef
//
// The demangler has separated the path's elements.  It has left the escapes in them and the hash at
// the end.
// Source: the Rust compiler's legacy mangling (rustc_symbol_mangling::legacy).
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::names {

/// Does the name end in the hash of a Rust function, "::h" and 16 hexadecimal digits?  A C++
/// demangler may have appended " (.llvm.123)".
bool is_half_mangled(std::string_view name);

/// Returns the name as demangle() writes that of a whole symbol: "<std::fs::ReadDir as
/// core::iter::Iterator>::next".  Returns a name that is not half mangled unchanged.  An unknown
/// escape stays.
std::string demangle_half_mangled(std::string_view name);

}  // namespace pe::names
