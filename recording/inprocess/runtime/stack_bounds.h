// Finds how far a signal handler may read a stack.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <cstdint>

namespace pe::inprocess {

/// The addresses [low, end) of a stack; both 0: unknown.
struct StackBounds {
  std::uint64_t low = 0, end = 0;
  [[nodiscard]] bool contains(std::uint64_t address) const noexcept {
    return address >= low && address < end;
  }
};

/// Returns the bounds of the stack of the process's first thread.
StackBounds first_stack_bounds() noexcept;

/// Returns the bounds of the calling thread's own stack.  Not for handlers: it may allocate.  A
/// library that hooks pthread_getattr_np(3) supplies the real one.
StackBounds own_stack_bounds(
    decltype(::pthread_getattr_np)* get_attributes = ::pthread_getattr_np) noexcept;

}  // namespace pe::inprocess
