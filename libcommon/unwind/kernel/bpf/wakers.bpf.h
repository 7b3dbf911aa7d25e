// Records the waker of a task: the current thread, with its stacks.  The real waker may have
// interrupted that thread.  Only the kernel's stack shows this, to a reader with the kernel's
// symbols.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/kernel/bpf/kernel_stack.bpf.h"
#include "unwind/kernel/bpf/take.bpf.h"

/// Returns the number of the waker; 0 if there is no room.
static __always_inline uint32_t take_waker(void* context, struct Scratch* scratch,
                                           struct Counts* counted) {
  struct task_struct* current = bpf_get_current_task_btf();
  uint64_t user_stack = 0;
  if (with_user_stacks && current->mm && !(current->flags & PF_KTHREAD)) {
    struct ThreadState* thread = bpf_task_storage_get(&threads, current, 0, 0);
    user_stack = take_user_stack(scratch, thread, counted, current->tgid);
  }
  const uint64_t kernel_stack = unwind_kernel_stack(context, scratch, counted);
  const uint64_t who = (uint64_t)current->tgid << 32 | (uint32_t)current->pid;
  scratch->words[1] = who;
  scratch->words[2] = user_stack << 32 | kernel_stack;
  scratch->count = 2;
  scratch->stop = kStopEndOfStack;
  scratch->header_bits = kHeaderWaker;
  uint64_t hash = (who ^ scratch->words[2] * 0x9e3779b97f4a7c15ULL) * 0x9e3779b97f4a7c15ULL;
  scratch->hash = hash ^ hash >> 29;
  const uint32_t number = number_stack(scratch);
  if (!number)
    ++counted->stacks_full;
  return number;
}
