// The functions that begin another program, in place of the C library's, for all of our libraries
// that are loaded into programs.
//
// What is begun finds in its environment what carried.h says, also where the program has left that
// out, unless it would not start so (sanitized_program.h).  Not seen: programs that are begun by
// system calls of the program's own (Go's runtime), and by the C library itself, from an
// environment that the program has emptied (system(3), popen(3)).
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace pe::inprocess {

/// For the library's beginning, before there are threads: finds the functions behind the hooks.
/// Programs that are begun find the library, and the variable `name` (with its "=") as it is in
/// `environment` now.
void prepare_exec_hooks(const char* const* environment, std::string_view name) noexcept;

// What follows, each library defines for itself.  It may be called in the child of a vfork(2).

/// Whether the calling process's next program is to be looked into.
bool follows_exec() noexcept;
/// Whether programs are that posix_spawn(3) begins.
bool follows_spawn() noexcept;
/// The process is about to become another program.  What it returns is for the next.
bool begin_exec() noexcept;
/// It could not, and goes on.
void fail_exec(bool what_began) noexcept;
/// A program is begun without the library, with which it would not start (sanitized_program.h).
void leave_out() noexcept;

}  // namespace pe::inprocess
