// Reading the memory of another process.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace pe::stream {

/// Copies what the process has at `avma` (process_vm_readv(2), or /proc/PID/mem) until `into` is
/// full; how many bytes that were: fewer where nothing is mapped, 0 if the process is gone or not
/// ours to read.
std::size_t read_memory(pid_t pid, std::uint64_t avma, std::span<std::byte> into);

}  // namespace pe::stream
