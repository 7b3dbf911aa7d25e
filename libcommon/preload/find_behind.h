// The function that a program would have without us.
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

namespace pe::preload {

/// Finds the next definition of `name` behind this library, in the order in which the dynamic
/// linker searches; nullptr if there is none (dlsym(3), RTLD_NEXT).
template <typename Function>
void find_behind(const char* name, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace pe::preload
