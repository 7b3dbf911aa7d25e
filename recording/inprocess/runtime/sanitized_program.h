// Finds programs that do not start with a library of ours in them.  They are built with
// AddressSanitizer, whose own library must be the first (recording/inprocess/sanitizer.h).
//
// Called just before a program is started: allocates nothing, and preserves errno.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::inprocess {

/// Whether the program that execveat(2) would start is one of them.  `folder` is AT_FDCWD, or a
/// folder's descriptor.  Checks the interpreter of a script.  False also for an unreadable program.
bool is_sanitized(int folder, const char* path) noexcept;
/// The same for an open file.
bool is_sanitized(int fd) noexcept;
/// The same for the program that execvp(3) would start.
bool is_sanitized_command(const char* file) noexcept;

/// Whether `environment` allows AddressSanitizer's library to follow another one.
bool takes_any_order(const char* const* environment) noexcept;

}  // namespace pe::inprocess
