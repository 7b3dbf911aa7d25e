// mmap(2) and munmap(2).  They count as allocations if the settings ask for it; otherwise they are
// summed up.
//
// Mappings that the C library makes itself (for its allocator, for stacks of threads) do not come
// here, and those that another allocator makes for a block do not count, so nothing counts twice.
// Only anonymous writable mappings are memory.  A mapping is one allocation until all of it is
// gone; mremap(2) is not followed.
// SPDX-License-Identifier: MIT
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/hooks/allocator_call.h"
#include "malloctrace/preload/process.h"
#include "malloctrace/preload/record.h"
#include "recording/inprocess/runtime/real_functions.h"

// NOLINTBEGIN(readability-function-size): six parameters, as mmap(2) has
namespace pe::malloctrace {
namespace {

/// Maps like the C library's function without calling it: nothing else needs to be ready.
void* map(void* address, std::size_t bytes, int protection, int flags, int fd,
          __off64_t offset) noexcept {
  // The result is an address, or -1 with errno.
  return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
      ::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

/// Pages of files belong to the kernel, and a mapping that cannot be written is a reservation.
/// Neither is memory of the program, however large it is.
bool is_memory(int protection, int flags) noexcept {
  return (flags & MAP_ANONYMOUS) != 0 && (protection & PROT_WRITE) != 0;
}

/// Earlier mappings at these addresses are gone (MAP_FIXED, or an earlier mremap(2)).  The blocks
/// in an allocator's mapping count instead of the mapping.
void count_mapped(const void* memory, std::size_t bytes, bool is_memory,
                  const void* frame) noexcept {
  forget_mapping(memory, bytes);
  if (is_memory && !is_inner_call(frame))
    record_mapping(memory, bytes, frame);
}

/// munmap(2) refuses other arguments.
bool can_be_unmapped(const void* address, std::size_t bytes) noexcept {
  constexpr std::uintptr_t kPage = 4096;
  return reinterpret_cast<std::uintptr_t>(address) % kPage == 0 && bytes != 0;
}

}  // namespace
}  // namespace pe::malloctrace

using namespace pe::malloctrace;

// Defined by their names in the object file: the headers redirect mmap to mmap64.
void* hook_mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                long offset) noexcept PE_HOOK_OF("mmap");
void* hook_mmap64(void* address, std::size_t bytes, int protection, int flags, int fd,
                  long offset) noexcept PE_HOOK_OF("mmap64");
int hook_munmap(void* address, std::size_t bytes) noexcept PE_HOOK_OF("munmap");

void* hook_mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                long offset) noexcept {
  void* mapped = map(address, bytes, protection, flags, fd, offset);
  if (mapped != MAP_FAILED && is_traced())
    count_mapped(mapped, bytes, is_memory(protection, flags), __builtin_frame_address(0));
  return mapped;
}

void* hook_mmap64(void* address, std::size_t bytes, int protection, int flags, int fd,
                  long offset) noexcept {
  void* mapped = map(address, bytes, protection, flags, fd, offset);
  if (mapped != MAP_FAILED && is_traced())
    count_mapped(mapped, bytes, is_memory(protection, flags), __builtin_frame_address(0));
  return mapped;
}

// NOLINTEND(readability-function-size)

int hook_munmap(void* address, std::size_t bytes) noexcept {
  if (is_traced() && can_be_unmapped(address, bytes))
    forget_mapping(address, bytes);
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}
