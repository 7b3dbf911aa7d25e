// Room for the handler of samples.
//
// The kernel writes a frame for a handler, 3.4 KiB with AVX-512, and the handler needs some room
// itself.  A thread that has neither on its stack, because the stack is small or nearly used up,
// would end the program.
// - Each sampled thread has an alternate stack (sigaltstack(2)): its own, or one of ours.  The hook
//   hides ours from the program.
// - A thread is not sampled while an alternate stack of its own is too small.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace pe::inprocess {

/// The program's own handlers may also run on it.
inline constexpr std::size_t kAddedBytes = std::size_t{64} * 1024;
using AddedStack = std::array<std::byte, kAddedBytes>;

/// Does for the program what sigaltstack(2) does.
int set_alternate_stack(const stack_t* stack, stack_t* old) noexcept;

/// Gives the calling thread, which is in this slot, our alternate stack, if it has none.  Not for
/// handlers.
void add_alternate_stack(std::uint32_t slot) noexcept;
/// The same for handlers: changes the stack in the signal's frame, which the kernel sets when the
/// handler returns.  Returns false if the thread has one.
bool lend_alternate_stack(std::uint32_t slot, stack_t& in_frame) noexcept;
/// Takes ours away again from the calling thread.
void remove_alternate_stack(std::uint32_t slot) noexcept;

}  // namespace pe::inprocess
