// The privileges of this process.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::record {

/// Numbers of capabilities(7), linux/capability.h.
enum class Capability : std::uint8_t {
  kDacReadSearch = 2,
  kKill = 5,
  kSysPtrace = 19,
  kSysAdmin = 21,
  kSyslog = 34,
  kPerfmon = 38,
  kBpf = 39,
  kCheckpointRestore = 40,
};

/// Returns whether the capability is effective in this process for what a recorder asks.  In a user
/// namespace, only those are that the kernel checks there: kDacReadSearch, kKill and kSysPtrace.
bool has_capability(Capability capability);

/// Returns what the user can do if memory or /proc of a process could not be read.
std::string_view fix_of_unreadable_processes();

/// Returns whether this process is in the first user namespace, where the kernel checks most
/// capabilities.
bool is_in_first_user_namespace();

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

}  // namespace pe::record
