// The privileges that a recorder keeps, and what it may do.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::recording {

/// Drops the capabilities that a recorder does not need once everything is open, whatever data it
/// reads later.  It keeps those to read processes and their files, and to signal its command.  With
/// `uses_bpf` it also keeps those to give programs in the kernel more tables.  The others are lost
/// for good, for this thread and those that it starts; execve(2) cannot restore them.  Throws
/// Error.
void keep_rights_to_record(bool uses_bpf);

/// Tests whether perf_event_open(2) works at all, with a counter of our own time in user space.
/// Returns 0 or errno.
int try_own_counter();

/// Returns the seccomp mode of this process: 0 none, 1 strict, 2 a filter.
int seccomp_mode();

}  // namespace pe::recording
