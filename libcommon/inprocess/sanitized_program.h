// Programs that do not start with a library of ours in them: those built with AddressSanitizer,
// whose own library must be the first (inprocess/sanitizer.h).
//
// For who is about to begin a program: nothing is allocated, and errno stays.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::inprocess {

/// Is the program such that execveat(2) would begin?  `folder` is AT_FDCWD, or a folder's
/// descriptor.  Of a script, its interpreter.  False also for what cannot be read.
bool is_sanitized(int folder, const char* path) noexcept;
/// The same of an open file.
bool is_sanitized(int fd) noexcept;
/// The same of the program that execvp(3) would begin.
bool is_sanitized_command(const char* file) noexcept;

/// Does `environment` say that the order does not matter?
bool takes_any_order(const char* const* environment) noexcept;

}  // namespace pe::inprocess
