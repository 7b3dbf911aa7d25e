// Reads this process's memory where another thread may unmap or protect it at any time.
//
// The kernel copies (process_vm_readv(2) of the process itself), so that a missing page shortens
// the copy.  A load from there would end the program by SIGSEGV.  A copy of 16 KiB costs 0.7 us.
// Functions for signal handlers; errno may change.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pe::inprocess {

/// Whether the kernel copies for us.  Filters of system calls (seccomp(2)) may forbid it.
bool can_copy_own_memory() noexcept;

/// A destination: its first part is filled first.
using CopyRoom = std::array<std::span<std::byte>, 2>;

/// Copies the memory at `avma` until `into` is full, or up to the first unreadable byte.  Returns
/// the number of bytes, or -1 if the kernel does not copy for us.
std::int64_t copy_own_memory(std::uint64_t avma, const CopyRoom& into) noexcept;

/// Returns how many bytes from `avma` on are in resident pages: at most `most`, and at most
/// 256 KiB.  Nobody waits for a read of these: they are not swapped out, and a userfaultfd(2)
/// of the program has no fault to answer.
std::uint64_t resident_bytes(std::uint64_t avma, std::uint64_t most) noexcept;

// Zeroed memory in whole pages, directly from the kernel: mmap(3) may be a hook, ours or the
// program's.

/// Returns nullptr and errno if there is no memory.  Pages cost nothing until they are touched, and
/// are not in core dumps.
template <typename T>
T* map_pages(std::size_t bytes) noexcept {
  const long mapped = ::syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
  if (mapped == -1)
    return nullptr;
  ::syscall(SYS_madvise, mapped, bytes, MADV_DONTDUMP);
  return reinterpret_cast<T*>(mapped);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace pe::inprocess
