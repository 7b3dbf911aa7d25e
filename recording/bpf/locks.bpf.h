// Finds out, from the registers with which a thread entered the kernel, whether it waits for a
// futex or wakes the threads that do.  Locks, condition variables and the like are futexes.
//
// System calls: arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/linux/futex.h.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/maps.bpf.h"

enum {
  kCallFutex = 202,
  kCallFutexWaitv = 449,
  kCallFutexWake = 454,
  kCallFutexWait = 455,
  kCallFutexRequeue = 456
};

enum {
  kFutexCommandMask = 0x7f,  ///< without FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME
  kFutexCommands = 14,
  /// FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2
  kFutexWaits = 1 << 0 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 13,
};

static __always_inline bool is_futex_call(const struct pt_regs* regs, bool waits) {
  const uint32_t command = regs->si & kFutexCommandMask;
  return command < kFutexCommands && (kFutexWaits >> command & 1) == waits;
}

static __always_inline bool waits_for_futex(const struct pt_regs* regs) {
  const uint64_t call = regs->orig_ax;
  return call == kCallFutex ? is_futex_call(regs, true)
                            : call == kCallFutexWaitv || call == kCallFutexWait;
}

/// Returns the address of the futex that the current thread waits for: of several, the first.
static __always_inline uint64_t futex_of(const struct pt_regs* regs) {
  const uint64_t first = regs->di;
  if (regs->orig_ax != kCallFutexWaitv)
    return first;
  uint64_t address = 0;  // struct futex_waitv: its second word
  return bpf_probe_read_user(&address, sizeof address, (const void*)(first + 8)) ? 0 : address;
}

/// Whether the current thread wakes threads that wait for a futex.  The end of a thread does so,
/// too (set_tid_address(2)).
static __always_inline bool releases_futex(struct task_struct* current) {
  if (!current->mm || (current->flags & PF_KTHREAD))
    return false;
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(current);
  const uint64_t call = regs->orig_ax;
  return call == kCallFutex
             ? is_futex_call(regs, false)
             : call == kCallFutexWake || call == kCallFutexRequeue || (current->flags & PF_EXITING);
}

/// Returns what else ended the wait of a task, which entered the kernel with these registers.
static __always_inline uint64_t other_end_of_wait(const struct task_struct* task,
                                                  const struct pt_regs* regs) {
  const uint64_t pending = task->pending.signal.sig[0] | task->signal->shared_pending.signal.sig[0];
  if (pending & ~task->blocked.sig[0])
    return kEndedBySignal;
  const uint64_t limit = regs->orig_ax == kCallFutexWait ? regs->r8 : regs->r10;
  return limit ? kEndedByTimeout : kEndedByInterrupt;
}
