// Room for the handler of samples on stacks that have little.
//
// The kernel writes a frame for a handler, 3.4 KiB with AVX-512, and the handler needs some room
// itself.  A thread that has neither on its stack would end the program.
// - A thread that starts with a small stack gets an alternate one (sigaltstack(2)), unless it sets
//   its own.  The hook hides that from the program.
// - A thread is not sampled while an alternate stack of its own is too small.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>

#include "inprocess/runtime/stack_bounds.h"

namespace pe::inprocess {

/// Does for the program what sigaltstack(2) does.
int set_alternate_stack(const stack_t* stack, stack_t* old) noexcept;

/// Gives the calling thread an alternate stack if its own, with these bounds, is small.  Not for
/// handlers.
void* add_alternate_stack(const StackBounds& own) noexcept;
/// Takes that stack away again, which may be nullptr.
void remove_alternate_stack(void* stack) noexcept;

}  // namespace pe::inprocess
