// operator new and delete.
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

#include <cstdlib>

#include "recording/inprocess/runtime/real_functions.h"

namespace pe::malloctrace {

// The allocator that the program would use without us: the next definitions in the search order.

#define PE_MALLOCTRACE_ALLOCATES(of)                                                               \
  of(malloc) of(free) of(calloc) of(realloc) of(reallocarray) of(posix_memalign) of(aligned_alloc) \
      of(memalign) of(valloc) of(pvalloc)
#define PE_MALLOCTRACE_REPLACES(of) \
  PE_MALLOCTRACE_ALLOCATES(of) of(malloc_usable_size) of(dlclose) of(pthread_getattr_np)

struct RealFunctions {
  PE_REAL_FUNCTIONS(PE_MALLOCTRACE_REPLACES)
  void (*exit_now)(int);  ///< _exit(2)
  bool is_glibc;          ///< malloc is that of libc.so.6
  bool may_call_hooks;    ///< one of the allocator's functions is not that of libc.so.6
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-dynamic-static-initializers)
extern constinit RealFunctions real;

/// Whether `function`, as the dynamic linker has found it by name, is in this library.  A stub in a
/// program that takes the function's address leads here, and counts as well.
bool is_ours(const void* function) noexcept;
/// Whether it is a stub of a program at a fixed address, which takes the address of the function:
/// the stub calls the function.
bool is_stub(const void* function) noexcept;
/// Whether the program's calls of malloc do not come here: its own malloc is found first.
bool has_own_malloc() noexcept;
/// Fills `real`.  False during the search, because dlsym(3) allocates.
bool find_real_functions() noexcept;

/// Finds whose operator new would be called without us.  To be called when the library starts.
void prepare_new() noexcept;
/// Whether operator new counts like malloc, because it is libstdc++'s or the allocator's.
bool counts_new_as_malloc() noexcept;

}  // namespace pe::malloctrace
