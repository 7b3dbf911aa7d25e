// Hooks, and tables of the functions that a program would call without them.
//
//     #define REPLACED(of) of(signal) of(setitimer)
//     struct RealFunctions {
//       PE_REAL_FUNCTIONS(REPLACED)
//     };
//
// has a pointer of each name: the next definition after this library, in the dynamic linker's
// search order; nullptr if there is none (dlsym(3), RTLD_NEXT).  A library that was loaded into a
// running program is not in that order: it takes the program's definitions (RTLD_DEFAULT).
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

#include "recording/inprocess/atomics.h"

namespace pe::inprocess {

/// Where to search: RTLD_NEXT or RTLD_DEFAULT.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
inline void* search_from = RTLD_NEXT;

template <typename Function>
void find_behind(const char* name, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlsym(search_from, name));
}

/// Finds the C library's own definition, by its symbol version ("GLIBC_2.17").  The runtimes of
/// sanitizers define wrappers with the same names but without versions.  A signal handler that
/// interrupts such a runtime must not call them.
template <typename Function>
void find_in_libc(const char* name, const char* version, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlvsym(RTLD_NEXT, name, version));
}

/// Starts the definition of a hook: a function of the C library's name.
#define PE_HOOK extern "C" __attribute__((visibility("default")))
/// Ends the declaration of a hook that has another name in the source, because headers declare
/// several types for its name or redirect it.
#define PE_HOOK_OF(name) asm(name) __attribute__((visibility("default")))

// NOLINTBEGIN(bugprone-macro-parentheses): names
#define PE_REAL_FUNCTION(name) decltype(::name)* name;
#define PE_FIND_REAL_FUNCTION(name) ::pe::inprocess::find_behind(#name, name);
/// Members of a table, in zeroed memory: a pointer for each function of `list`, and find(), which
/// fills them.
#define PE_REAL_FUNCTIONS(list)         \
  list(PE_REAL_FUNCTION) bool is_ready; \
  void find() noexcept { list(PE_FIND_REAL_FUNCTION) }
// NOLINTEND(bugprone-macro-parentheses)

/// Returns the table, which the first call fills.  Two threads that are both first find the same
/// functions.
template <typename Table>
const Table& found(Table& table) noexcept {
  if (!load_published(table.is_ready)) {
    table.find();
    publish(table.is_ready, true);
  }
  return table;
}

}  // namespace pe::inprocess
