// Finds the functions that a program would call without our hooks.
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

namespace pe::inprocess {

/// Finds the next definition of `name` after this library, in the dynamic linker's search order;
/// nullptr if there is none (dlsym(3), RTLD_NEXT).
template <typename Function>
void find_behind(const char* name, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Finds the C library's own definition, by its symbol version ("GLIBC_2.17").  The runtimes of
/// sanitizers define wrappers with the same names but without versions.  A signal handler that
/// interrupts such a runtime must not call them.
template <typename Function>
void find_in_libc(const char* name, const char* version, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlvsym(RTLD_NEXT, name, version));
}

}  // namespace pe::inprocess
