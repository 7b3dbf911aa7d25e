// The functions that a program would have without us.
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

namespace pe::inprocess {

/// Finds the next definition of `name` behind this library, in the order in which the dynamic
/// linker searches; nullptr if there is none (dlsym(3), RTLD_NEXT).
template <typename Function>
void find_behind(const char* name, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Finds the C library's own definition, by the `version` that it has there ("GLIBC_2.17").  The
/// runtimes of sanitizers define wrappers under the same names, without versions: a handler of
/// signals that interrupts such a runtime must not call them.
template <typename Function>
void find_in_libc(const char* name, const char* version, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlvsym(RTLD_NEXT, name, version));
}

}  // namespace pe::inprocess
