// The allocator that the program would use without us: the next definitions in the search order.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <cstddef>

namespace pe::malloctrace {

struct RealFunctions {
  void* (*malloc)(std::size_t);
  void (*free)(void*);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*reallocarray)(void*, std::size_t, std::size_t);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  void* (*valloc)(std::size_t);
  void* (*pvalloc)(std::size_t);
  std::size_t (*malloc_usable_size)(void*);
  int (*dlclose)(void*);
  void (*exit_now)(int);  ///< _exit(2)
  int (*pthread_getattr_np)(pthread_t, pthread_attr_t*);
  bool is_glibc;  ///< malloc is that of libc.so.6
  bool is_ready;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-dynamic-static-initializers)
extern constinit RealFunctions real;

/// Whether `function`, as the dynamic linker has found it by name, is in this library.  A stub in a
/// program that takes the function's address leads here, and counts as well.
bool is_ours(const void* function) noexcept;
/// Whether the program's calls of malloc do not come here: its own malloc is found first.
bool has_own_malloc() noexcept;
/// Fills `real`.  False during the search, because dlsym(3) allocates.
bool find_real_functions() noexcept;

}  // namespace pe::malloctrace
