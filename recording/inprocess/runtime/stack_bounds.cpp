// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/stack_bounds.h"

#include <pthread.h>

extern "C" {
/// The address where the kernel has put the first thread's arguments (ld.so of glibc).
extern void* __libc_stack_end;  // NOLINT
}

namespace pe::inprocess {

StackBounds first_stack_bounds() noexcept {
  /// The kernel keeps at least this much below the first thread's stack free of mappings
  /// (mmap_base() in arch/x86/mm/mmap.c).
  constexpr std::uint64_t kFirstStackBytes = std::uint64_t{128} << 20;
  constexpr std::uint64_t kArgumentBytes = 64;  // argc, argv, and more
  const auto end = reinterpret_cast<std::uint64_t>(__libc_stack_end) + kArgumentBytes;
  return {end - kFirstStackBytes, end};
}

StackBounds own_stack_bounds(decltype(::pthread_getattr_np)* get_attributes) noexcept {
  const StackBounds first = first_stack_bounds();
  if (first.contains(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0))))
    return first;
  pthread_attr_t attributes;
  if (get_attributes(::pthread_self(), &attributes) != 0)
    return {};
  void* low = nullptr;
  std::size_t bytes = 0;
  StackBounds bounds;
  if (::pthread_attr_getstack(&attributes, &low, &bytes) == 0)
    bounds = {reinterpret_cast<std::uint64_t>(low), reinterpret_cast<std::uint64_t>(low) + bytes};
  ::pthread_attr_destroy(&attributes);
  return bounds;
}

}  // namespace pe::inprocess
