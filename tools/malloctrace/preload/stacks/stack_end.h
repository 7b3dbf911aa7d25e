// Finds how far a stack may be read: to the end of the thread's own stack, or of the mapping that
// contains another one.  Coroutines and signals (alternate stacks) have others.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/tracer.h"

namespace pe::malloctrace {

/// Returns the end of the stack that `sp` points into; 0 if `sp` is not readable.
StackEnd end_of_stack(Thread& thread, std::uint64_t sp) noexcept;

}  // namespace pe::malloctrace
