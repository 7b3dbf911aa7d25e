// How far a stack may be read, asked inside of a signal handler.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::inprocess {

/// Addresses from `low` up to `end`; both 0: not known.
struct StackBounds {
  std::uint64_t low = 0, end = 0;
  [[nodiscard]] bool contains(std::uint64_t address) const noexcept {
    return address >= low && address < end;
  }
};

/// Those of the process's first thread.
StackBounds first_stack_bounds() noexcept;

/// Those of the calling thread's own stack.  Not for handlers: it may allocate.
StackBounds own_stack_bounds() noexcept;

/// Whether the page of an address can be read.  A system call that every program is allowed, that
/// changes nothing; errno may change.
bool is_readable(std::uint64_t address) noexcept;

}  // namespace pe::inprocess
