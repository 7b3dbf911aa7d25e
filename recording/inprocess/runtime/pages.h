// Zeroed memory in whole pages, directly from the kernel: mmap(3) may be a hook, ours or the
// program's.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace pe::inprocess {

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
