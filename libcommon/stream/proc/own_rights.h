// The capabilities of this process.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pe::stream {

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
/// Returns whether its pid namespace is the first: the kernel itself numbers threads by that one.
bool is_in_first_pid_namespace();

// How much memory this process may still use: the least of what the machine has, what each of its
// control groups (cgroups(7)) allows, and its own limit (ulimit -v).
//
// The kernel kills a process that goes beyond a group's limit, so sizes are chosen before.

/// Returns bytes.  What the kernel can drop, such as cached files, counts as available.
std::uint64_t available_memory();
/// The same, with other folders than /proc and /sys/fs/cgroup.
std::uint64_t available_memory(const std::string& proc, const std::string& groups);

/// Returns the lesser of `most` and 1/`divisor` of the available memory.
std::uint64_t share_of_memory(std::uint64_t most, std::uint64_t divisor);

}  // namespace pe::stream
