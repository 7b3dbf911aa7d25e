// SPDX-License-Identifier: MIT
#include "recording/signal/core/alternate_stack.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recording/inprocess/keep_errno.h"
#include "recording/signal/core/process.h"

namespace pe::inprocess {
namespace {

#ifndef AT_MINSIGSTKSZ
constexpr unsigned long AT_MINSIGSTKSZ = 51;  // NOLINT: as in newer headers
#endif

/// The handler's own frames, and those of the functions that it calls, have up to 2.3 KiB.
constexpr std::uint64_t kHandlerBytes = 2560;

/// Returns the size of an alternate stack on which the handler can run.
std::uint64_t least_bytes() noexcept {
  constexpr std::uint64_t kUsualFrameBytes = 4096;
  const std::uint64_t frame = ::getauxval(AT_MINSIGSTKSZ);
  return (frame != 0 ? frame : kUsualFrameBytes) + kHandlerBytes;
}

long set_in_kernel(const stack_t* stack, stack_t* old) noexcept {
  return ::syscall(SYS_sigaltstack, stack, old);
}

stack_t added(void* memory) noexcept { return {memory, 0, kAddedBytes}; }

}  // namespace

int set_alternate_stack(const stack_t* stack, stack_t* old) noexcept {
  void* const ours = added_stack_of_this_thread();
  const bool is_off = stack != nullptr && (stack->ss_flags & SS_DISABLE) != 0;
  const bool is_small = stack != nullptr && !is_off && stack->ss_size < least_bytes();
  const bool is_paused = is_small && pause_this_thread();
  stack_t before{};
  if (set_in_kernel(stack, &before) != 0) {
    const KeepErrno keep;
    if (is_paused)
      continue_this_thread();
    return -1;
  }
  if (is_paused)
    count_up(process.header().without_stack);
  if (is_off && ours != nullptr) {
    const stack_t again = added(ours);
    const KeepErrno keep;
    set_in_kernel(&again, nullptr);
  }
  if (stack != nullptr && !is_small)
    continue_this_thread();
  if (old != nullptr && ours != nullptr && before.ss_sp == ours)
    *old = {nullptr, SS_DISABLE, 0};
  else if (old != nullptr)
    *old = before;
  return 0;
}

void add_alternate_stack(std::uint32_t slot) noexcept {
  stack_t now{};
  if (set_in_kernel(nullptr, &now) == 0 && lend_alternate_stack(slot, now) &&
      set_in_kernel(&now, nullptr) != 0)
    process.own[slot].added_stack = nullptr;
}

bool lend_alternate_stack(std::uint32_t slot, stack_t& in_frame) noexcept {
  OwnThread& own = process.own[slot];
  if (process.stacks == nullptr || own.is_stack_lost != 0 || (in_frame.ss_flags & SS_DISABLE) == 0)
    return false;
  own.added_stack = &process.stacks[slot];
  in_frame = added(own.added_stack);
  return true;
}

void remove_alternate_stack(std::uint32_t slot) noexcept {
  OwnThread& own = process.own[slot];
  stack_t now{};
  constexpr stack_t kNone{nullptr, SS_DISABLE, 0};
  if (own.added_stack == nullptr || set_in_kernel(nullptr, &now) != 0)
    return;
  // It fails while a handler of the program runs there.
  if (now.ss_sp == own.added_stack && set_in_kernel(&kNone, nullptr) != 0)
    own.is_stack_lost = 1;
  own.added_stack = nullptr;
}

}  // namespace pe::inprocess
