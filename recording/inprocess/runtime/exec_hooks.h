// Hooks for the C library's functions that start another program.  All our libraries that are
// loaded into programs use them.
//
// The hooks add the variables of carried.h to the started program's environment if they are
// missing.  They do not if the program would not start with the library (carried.h).
//
// The hooks miss programs that are started by direct system calls (Go's runtime).  They also miss
// system(3) and popen(3) of the C library itself, if the program has emptied its environment.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace pe::inprocess {

/// Finds the functions that the hooks replace.  The library calls this at its start, before there
/// are threads.  Started programs get the library, and the variable `name` with its
/// present value in `environment`.
void prepare_exec_hooks(const char* const* environment, std::string_view name) noexcept;

// Each library defines the following functions itself.  The child of a vfork(2) may call them.

/// Whether to load the library into the next program of the calling process.
bool follows_exec() noexcept;
/// Whether to load the library into programs that posix_spawn(3) starts.
bool follows_spawn() noexcept;
/// Prepares the process for another program.  fail_exec() receives the result.
bool begin_exec() noexcept;
/// Undoes begin_exec(): exec(3) has failed, and the process continues.
void fail_exec(bool what_began) noexcept;
/// Counts a program that is started without the library, because it would not start with it
/// (carried.h).
void leave_out() noexcept;

// Hooks for prctl(2) and syscall(2), by which programs install filters of system calls
// (seccomp(2)).
//
// The library must not make a call that the filter of its program answers by ending the program.
// Filters that are installed by a program's own instructions stay unnoticed.

/// Finds the functions that the hooks replace.  The library calls this at its start, before there
/// are threads.
void prepare_filter_hooks() noexcept;

// Each library defines the following functions itself.

/// The calling thread, or all threads, are about to get this filter.
void note_filter(std::span<const sock_filter> filter) noexcept;
/// The calling thread is about to allow itself only read, write, exit and the return from handlers.
void note_strict_mode() noexcept;
/// Whether the kernel copies memory for us: see can_copy_own_memory().
bool may_copy() noexcept;

}  // namespace pe::inprocess
