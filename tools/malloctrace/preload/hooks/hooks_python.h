// Python's own allocator.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::malloctrace {

/// Finds the process's Python, if it has one whose frames can be read.  Stacks then have its
/// frames, and the blocks of its allocator count.  To be called when the library has started, in a
/// process that is traced.
void start_python() noexcept;
/// Gives Python its allocators back, unless something else has been installed in front of ours.
void stop_python() noexcept;

}  // namespace pe::malloctrace
