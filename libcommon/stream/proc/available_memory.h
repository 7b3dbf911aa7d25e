// How much memory this process may still use: the least of what the machine has, what each of its
// control groups (cgroups(7)) allows, and its own limit (ulimit -v).
//
// The kernel kills a process that goes beyond a group's limit, so sizes are chosen before.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace pe::stream {

/// Returns bytes.  What the kernel can drop, such as cached files, counts as available.
std::uint64_t available_memory();
/// The same, with other folders than /proc and /sys/fs/cgroup.
std::uint64_t available_memory(const std::string& proc, const std::string& groups);

/// Returns the lesser of `most` and 1/`divisor` of the available memory.
std::uint64_t share_of_memory(std::uint64_t most, std::uint64_t divisor);

}  // namespace pe::stream
