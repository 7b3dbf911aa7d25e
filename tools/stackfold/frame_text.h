// Writes frames in the form of folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stackfold/options.h"

// Decodes Rust names that a C++ demangler has processed, as old perf, DTrace and macOS sample print
// them:
//
//   _$LT$std..fs..ReadDir$u20$as$u20$core..iter..Iterator$GT$::next::h0123456789abcdef
//
// The demangler has separated the path's elements.  It has left the escapes in them and the hash at
// the end.
// Source: the Rust compiler's legacy mangling (rustc_symbol_mangling::legacy).

namespace pe::names {

/// Does the name end in the hash of a Rust function, "::h" and 16 hexadecimal digits?  A C++
/// demangler may have appended " (.llvm.123)".
bool is_half_mangled(std::string_view name);

/// Returns the name as demangle() writes that of a whole symbol: "<std::fs::ReadDir as
/// core::iter::Iterator>::next".  Returns a name that is not half mangled unchanged.  An unknown
/// escape stays.
std::string demangle_half_mangled(std::string_view name);

}  // namespace pe::names

namespace pe::fold {

/// Returns a name that is valid in a folded line (folded(5)): ';' becomes ':', and a character that
/// controls a terminal or deceives a reader '?'.  A name in the form of a time, "@12.300", gets a
/// '_' before it.  Drops trailing blanks and demangles half-mangled Rust symbols.  An empty name
/// becomes "[unknown]".
std::string clean_name(std::string_view name);

/// Returns the cleaned name with the suffix of its kind; `flags` as in stream::SymbolFlags.
std::string frame_text(std::string_view name, std::uint32_t flags, const Marks& marks);

/// Returns the prefix that --modules adds to a name, as DTrace writes it: "libc.so.6`",
/// "[kernel]`", "[jit]`".  Empty if `module` is neither the path of a file nor a word in brackets.
std::string module_text(std::string_view module, bool is_jit);

/// Returns the suffix for a source line: ":sort.c:71".
std::string source_text(std::string_view file, std::uint32_t line);

/// Guesses from the file name alone: "libc.so.6", "plugin.so".
bool looks_like_library(std::string_view path);
/// Does this path, or a word like "[kernel.kallsyms]", name a part of the kernel?
bool is_kernel_module(std::string_view module);
/// Returns the flags of a frame in this module, as in stream::SymbolFlags.
std::uint32_t module_flags(std::string_view module);

/// Returns the text of a frame without a symbol: "libc.so.6+0x1f"; "[unknown]" without a module.
std::string unnamed_text(std::string_view module, std::uint64_t file_offset);

/// Returns "comm", "comm-PID" or "comm-PID/TID".  Blanks in comm become '_', as in
/// stackcollapse-perf.pl.
std::string root_text(std::string_view comm, std::uint32_t pid, std::uint32_t tid, RootName root);

}  // namespace pe::fold
