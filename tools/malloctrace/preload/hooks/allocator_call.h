// Allocators that call hooks themselves: calloc that calls malloc, realloc that calls malloc and
// free, a preloaded malloc that calls calloc.
//
// Only the outermost call of a thread counts, because the program knows only its block.  A hook
// notes the address of its frame while it calls the real function.  A hook whose frame is below
// it, on the same stack, was called by the allocator.
//
// longjmp(3) out of an allocator leaves a note behind.  It is out of date if the new hook's frame
// is above it, or if the return address of the noted frame has changed.  This is a heuristic: the
// word may keep its value in an unused part of a later frame.  Allocations are then missing until
// the stack has been shorter once.
//
// glibc's allocator calls no hook, so its calls are not noted.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/tracer.h"

namespace pe::malloctrace {

namespace allocator_call {

/// Returns the thread's own stack; both bounds are 0 before the thread has started.
inline inprocess::StackBounds own_stack() noexcept {
  const Thread* thread = thread_state.thread;
  return thread != nullptr && thread->is_ready ? thread->stack : inprocess::StackBounds{};
}

/// Whether two frames are on the same stack.  Only the bounds of the thread's own one are known; on
/// another, an allocator uses little.
inline bool are_on_one_stack(const std::uint64_t* a, const std::uint64_t* b) noexcept {
  constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 10;
  const auto first = reinterpret_cast<std::uint64_t>(a);
  const auto second = reinterpret_cast<std::uint64_t>(b);
  const inprocess::StackBounds own = own_stack();
  if (own.contains(first) || own.contains(second))
    return own.contains(first) && own.contains(second);
  return (first < second ? second - first : first - second) < kMostBytes;
}

/// Whether the function of a noted frame, on the same stack, has been left by longjmp(3).  A stack
/// of unknown bounds may be unmapped above `frame`, and is not read.
inline bool is_over(const CallNote& note, const std::uint64_t* frame) noexcept {
  if (frame >= note.frame)
    return true;
  return own_stack().contains(reinterpret_cast<std::uint64_t>(note.frame)) &&
         note.frame[1] != note.return_address;
}

}  // namespace allocator_call

/// Whether the real allocator has called the hook with this frame (__builtin_frame_address(0)).
[[gnu::always_inline]] inline bool is_inner_call(const void* hook) noexcept {
  if (!real.may_call_hooks || thread_state.call.frame == nullptr) [[likely]]
    return false;
  const auto* frame = static_cast<const std::uint64_t*>(hook);
  const CallNote& note = thread_state.call;
  return allocator_call::are_on_one_stack(frame, note.frame) &&
         !allocator_call::is_over(note, frame);
}

/// Notes an outermost call of the real allocator while this exists.
class AllocatorCall {
 public:
  /// `hook` is the frame of the hook (__builtin_frame_address(0)).
  [[gnu::always_inline]] explicit AllocatorCall(const void* hook) noexcept {
    if (!real.may_call_hooks) [[likely]]
      return;
    const auto* frame = static_cast<const std::uint64_t*>(hook);
    // A signal handler on another stack has interrupted the noted call, which goes on afterwards.
    if (thread_state.call.frame != nullptr &&
        !allocator_call::are_on_one_stack(frame, thread_state.call.frame))
      before_ = thread_state.call;
    thread_state.call = {frame, frame[1]};
  }
  AllocatorCall(const AllocatorCall&) = delete;
  AllocatorCall(AllocatorCall&&) = delete;
  AllocatorCall& operator=(const AllocatorCall&) = delete;
  AllocatorCall& operator=(AllocatorCall&&) = delete;
  [[gnu::always_inline]] ~AllocatorCall() {
    if (real.may_call_hooks) [[unlikely]]
      thread_state.call = before_;
  }

 private:
  CallNote before_{};
};

/// Calls the real allocator for the hook with this frame, as an outermost call.
template <typename Function>
[[gnu::always_inline]] inline auto call_allocator(const void* hook, Function function) noexcept {
  const AllocatorCall call(hook);
  return function();
}

}  // namespace pe::malloctrace
