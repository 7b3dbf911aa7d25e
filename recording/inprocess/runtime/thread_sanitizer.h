// Finds out whether ThreadSanitizer is part of the program itself, as clang links it.
//
// In such a program, its wrappers of the C library's functions precede a library of ours.  They
// crash if our library calls them before the runtime has started, which in each thread happens
// after our hook.  gcc's runtime is a library, which starts when it is first called.
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>
#include <sys/auxv.h>

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the runtime's name
extern "C" [[gnu::weak]] void __tsan_init();

namespace pe::inprocess {

/// Calls nothing that allocates.  A failing dlsym(3) would call the program's malloc.
inline bool is_thread_sanitizer_in_program() noexcept {
  Dl_info runtime{};
  Dl_info program{};
  const auto* entry =
      reinterpret_cast<const void*>(::getauxval(AT_ENTRY));  // NOLINT(performance-no-int-to-ptr)
  return &__tsan_init != nullptr &&
         ::dladdr(reinterpret_cast<const void*>(&__tsan_init), &runtime) != 0 &&
         ::dladdr(entry, &program) != 0 && runtime.dli_fbase == program.dli_fbase;
}

}  // namespace pe::inprocess
