// How a frame is written in folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stackfold/options.h"

namespace pe::fold {

/// A name made fit for a folded line (folded(5)): ';' becomes ':', control
/// characters '?', blanks at its end go, and an empty one is "[unknown]".  Half-mangled Rust names
/// are demangled.
std::string clean_name(std::string_view name);

/// The cleaned name with the suffix of its kind; `flags` as in stream::SymbolFlags.
std::string frame_text(std::string_view name, std::uint32_t flags, const Marks& marks);

/// What --modules puts before a name, as DTrace has it: "libc.so.6`", "[kernel]`", "[jit]`";
/// nothing where `module` is a path of no file and no word in brackets.
std::string module_text(std::string_view module, bool is_jit);

/// What is added for the line of a source: ":sort.c:71".
std::string source_text(std::string_view file, std::uint32_t line);

/// A guess without the file's own word: "libc.so.6", "plugin.so".
bool looks_like_library(std::string_view path);
/// Is a file with this path, or what stands for one, "[kernel.kallsyms]", of the kernel?
bool is_kernel_module(std::string_view module);
/// What that makes of a frame's flags, as in stream::SymbolFlags.
std::uint32_t module_flags(std::string_view module);

/// A function without a name: "libc.so.6+0x1f"; "[unknown]" without a module.
std::string unnamed_text(std::string_view module, std::uint64_t file_offset);

/// "comm", "comm-PID" or "comm-PID/TID"; blanks in comm become '_', as stackcollapse-perf.pl has
/// it.
std::string root_text(std::string_view comm, std::uint32_t pid, std::uint32_t tid, RootName root);

}  // namespace pe::fold
