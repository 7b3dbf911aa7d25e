// Zeroed memory in whole pages, directly from the kernel.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace pe::inprocess {

/// Returns nullptr and errno if there is no memory.  Pages cost nothing until they are touched, and
/// are not in core dumps.
template <typename T>
T* map_pages(std::size_t bytes) noexcept {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  ::madvise(memory, bytes, MADV_DONTDUMP);
  return static_cast<T*>(memory);
}

}  // namespace pe::inprocess
