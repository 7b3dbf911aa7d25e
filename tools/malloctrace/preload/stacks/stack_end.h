// How far a stack may be read: to the end of the thread's own, or of the mapping that another one
// is in (coroutines, alternate stacks of signals).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/tracer.h"

namespace pe::malloctrace {

/// Fills stack_low and stack_end of the calling thread.
void find_own_stack(Thread& thread) noexcept;
/// Of the stack that `sp` points into; 0 if nothing is readable there.
StackEnd end_of_stack(Thread& thread, std::uint64_t sp) noexcept;

}  // namespace pe::malloctrace
