// Notes the locks of the kernel for which threads sleep, such as a process's mmap_lock.
//
// The tracepoints are at the start and the end of a wait: include/trace/events/lock.h.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/samples.bpf.h"

/// Bits of the tracepoint's flags: LCB_F_... .  Other locks only spin.
enum { kLockSpins = 1 << 0, kLockSleeps = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 };

SEC("tp_btf/contention_begin")
int BPF_PROG(on_lock_wait, void* lock, unsigned int flags) {
  if ((flags & kLockSpins) || !(flags & kLockSleeps))
    return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  if (!is_target(task->tgid))
    return 0;
  struct ThreadState* thread =
      bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (thread)
    thread->kernel_lock = (uint64_t)lock;
  return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_lock_taken, void* lock) {
  struct ThreadState* thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
  if (thread && thread->kernel_lock == (uint64_t)lock)
    thread->kernel_lock = 0;
  return 0;
}
