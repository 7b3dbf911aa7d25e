// Reads the CPU time that threads and processes have used, in nanoseconds, as the kernel counts it.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace pe::recording {

/// Returns the CPU time of a thread (/proc/TID/schedstat); nullopt if it is gone.
std::optional<std::uint64_t> thread_cpu_ns(pid_t tid);

/// Returns the CPU time of a process or zombie, including its ended threads; nullopt if it is gone.
std::optional<std::uint64_t> process_cpu_ns(pid_t pid);

/// Returns the CPU time of the children that a process has waited for, and of those that these had.
/// It is rounded down to 10 ms; 0 if the process is gone.
std::uint64_t children_cpu_ns(pid_t pid);

/// Returns the same for this process, not rounded.
std::uint64_t ended_children_cpu_ns();

/// Returns the time in which the host of this virtual machine ran something else, summed over all
/// CPUs.  It counts from the start of the machine, rounded down to 10 ms (steal in /proc/stat,
/// proc(5)).  It is 0 if the host does not report it.
std::uint64_t stolen_cpu_ns();

}  // namespace pe::recording
