// How long threads hold locks.  A thread that a release woke has the lock from the moment at which
// it runs, unless it waits for that lock again.  A lock that was waited for is marked as such, so
// that its next release is a system call.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/maps.bpf.h"

static __always_inline struct HeldLock* held_of(struct ThreadState* thread, uint64_t lock) {
  return &thread->held[(lock >> 2 ^ lock >> 6) & (kHeldLocks - 1)];
}

/// The thread's wait has ended at `now`.
static __always_inline void begin_hold(struct ThreadState* thread, uint64_t now) {
  const struct SumKey* key = &thread->key;
  const struct HeldLock held = {
      .lock = key->lock, .since_ns = now, .user_stack = key->user_stack, .program = key->program};
  *held_of(thread, key->lock) = held;
}

/// The thread waits for this lock, so it does not hold it.
static __always_inline void forget_hold(struct ThreadState* thread, uint64_t lock) {
  struct HeldLock* held = held_of(thread, lock);
  if (held->lock == lock)
    held->lock = 0;
}

/// The thread releases this lock.  Returns since when it has held it, and sets the key of its sum;
/// returns 0 if that is not known.
static __always_inline uint64_t end_hold(struct task_struct* task, struct ThreadState* thread,
                                         uint64_t lock, struct SumKey* key) {
  struct HeldLock* held = held_of(thread, lock);
  const uint32_t program = task->self_exec_id;
  if (!lock || held->lock != lock)
    return 0;
  held->lock = 0;
  key->tgid = task->tgid;
  key->tid = task->pid;
  key->user_stack = held->user_stack;
  key->state = kStateHeld;
  key->program = held->program;
  key->lock = lock;
  return held->program == (program & 0xffffff) ? held->since_ns : 0;
}
