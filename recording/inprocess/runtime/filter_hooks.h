// Hooks for prctl(2) and syscall(2), by which programs install filters of system calls
// (seccomp(2)).
//
// The library must not make a call that the filter of its program answers by ending the program.
// Filters that are installed by a program's own instructions stay unnoticed.
// SPDX-License-Identifier: MIT
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>

namespace pe::inprocess {

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
