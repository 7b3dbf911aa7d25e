// The system calls that the library makes in a program that forbids itself some (seccomp(2)).
//
// Before the kernel installs a filter, a hook calls note_filter() of exec_hooks.h.  From then on
// the library makes no call that would end the program.  Sampling stops if that is the return from
// a handler.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::inprocess {

/// Returns how many filters the calling thread has; see filters_in().
std::uint32_t count_filters() noexcept;

}  // namespace pe::inprocess
