// How much CPU time threads and processes have used, in nanoseconds, as the kernel counts it.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace pe::record {

/// Of a thread (/proc/TID/schedstat); nullopt if it is gone.
std::optional<std::uint64_t> thread_cpu_ns(pid_t tid);

/// Of a process, also a zombie, with its threads that have ended; nullopt if it is gone.
std::optional<std::uint64_t> process_cpu_ns(pid_t pid);

/// Of the children that a process has waited for, and of those that these had; rounded down to
/// 10 ms.  0 if it is gone.
std::uint64_t children_cpu_ns(pid_t pid);

/// The same of this process's own, not rounded.
std::uint64_t ended_children_cpu_ns();

/// Time of all CPUs in which the host of this virtual machine ran something else, since the start
/// of the machine, rounded down to 10 ms (steal in /proc/stat, proc(5)); 0 if the host does not
/// report it.
std::uint64_t stolen_cpu_ns();

}  // namespace pe::record
