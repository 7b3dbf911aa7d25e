// Reads the memory of another process.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace pe::stream {

/// Copies the process's memory at `avma` (process_vm_readv(2), or /proc/PID/mem) until `into` is
/// full.  Returns the number of bytes: fewer if a part is not mapped, 0 if the process is gone or
/// we may not read it.
std::size_t read_memory(pid_t pid, std::uint64_t avma, std::span<std::byte> into);

/// Whether we have no right to read the memory of a process; false if it is gone.
bool is_memory_forbidden(pid_t pid);

}  // namespace pe::stream
