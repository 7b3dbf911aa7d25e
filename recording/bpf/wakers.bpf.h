// Records the waker of a task: the current thread, with its stacks.  The real waker may have
// interrupted that thread.  Only the kernel's stack shows this, to a reader with the kernel's
// symbols.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/kernel_stack.bpf.h"
#include "recording/bpf/maps.bpf.h"
#include "recording/bpf/samples.bpf.h"

// Finds out, from the registers with which a thread entered the kernel, whether it waits for a
// futex or wakes the threads that do.  Locks, condition variables and the like are futexes.
//
// System calls: arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/linux/futex.h.

enum {
  kCallFutex = 202,
  kCallFutexWaitv = 449,
  kCallFutexWake = 454,
  kCallFutexWait = 455,
  kCallFutexRequeue = 456
};

enum {
  kFutexIsPrivate = 0x80,    ///< FUTEX_PRIVATE_FLAG
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

/// Whether this system call wakes threads that wait for a futex.
static __always_inline bool is_release_call(const struct pt_regs* regs, uint64_t call) {
  return call == kCallFutex ? is_futex_call(regs, false)
                            : call == kCallFutexWake || call == kCallFutexRequeue;
}

/// Whether the current thread may have woken a task that waits for a futex.  The end of a thread
/// does so, too (set_tid_address(2)).  Only threads with the same memory release a private futex:
/// another one was interrupted by what ended the wait.
static __always_inline bool releases_futex(struct task_struct* current, struct task_struct* task) {
  if (!current->mm || (current->flags & PF_KTHREAD))
    return false;
  const struct pt_regs* of_wait = (const struct pt_regs*)bpf_task_pt_regs(task);
  const bool is_private = of_wait->orig_ax == kCallFutex && (of_wait->si & kFutexIsPrivate);
  if (is_private && current->mm != task->mm)
    return false;
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(current);
  return is_release_call(regs, regs->orig_ax) || (current->flags & PF_EXITING);
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

static __always_inline uint64_t hash_words(uint64_t hash, const uint64_t* words) {
  hash = (hash ^ words[0] ^ words[1] * 0x9e3779b97f4a7c15ULL) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}

/// Returns the number of the wakers; 0 if there is no room.
static __always_inline uint32_t number_wakers(const struct Waking* waking, struct Scratch* scratch,
                                              struct Counts* counted) {
  uint64_t hash = 0;
#pragma unroll
  for (uint32_t i = 0; i < 2 * kMaxWakers; i += 2) {
    if (i < waking->count)
      hash = hash_words(hash, &waking->words[i]);
    scratch->words[i + 1] = waking->words[i];
    scratch->words[i + 2] = waking->words[i + 1];
  }
  scratch->count = waking->count;
  scratch->stop = kStopEndOfStack;
  scratch->header_bits = kHeaderWaker;
  scratch->script_words = 0;
  scratch->hash = hash;
  const uint32_t number = number_stack(scratch);
  if (!number)
    ++counted->stacks_full;
  return number;
}

/// Returns the number of the single waker.
static __always_inline uint32_t number_waker(struct ThreadState* thread, struct Scratch* scratch,
                                             struct Counts* counted) {
  const uint64_t* words = thread->waking.words;
  struct KnownWaker* known = &thread->known_wakers[hash_words(0, words) & (kThreadWakers - 1)];
  if (known->number && is_current_stack(known->number) && known->words[0] == words[0] &&
      known->words[1] == words[1])
    return known->number;
  const uint32_t number = number_wakers(&thread->waking, scratch, counted);
  known->words[0] = words[0];
  known->words[1] = words[1];
  known->number = number;
  return number;
}

/// Adds the wakers of the current thread, which was woken while `thread` waited.
static __always_inline void add_earlier_wakers(struct Waking* waking,
                                               const struct Waking* earlier) {
#pragma unroll
  for (uint32_t i = 2; i < 2 * kMaxWakers; ++i)
    waking->words[i] = i < 2 * max_wakers ? earlier->words[i - 2] : 0;
#pragma unroll
  for (uint32_t i = 1; i < kMaxWakers; ++i)
    waking->copied_ns[i] = i < max_wakers ? earlier->copied_ns[i - 1] : 0;
  const uint64_t most = 2 * (max_wakers - 1);
  waking->count += earlier->count < most ? earlier->count : most;
}

/// Forwards the current thread's stack if it has ended early in the scratch.  Returns when; 0 if it
/// was not forwarded.  Outside of system calls, an interrupt has probably ended the wait.
static __always_inline uint64_t forward_waker(struct Scratch* scratch, uint32_t user_stack,
                                              struct Counts* counted) {
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
  if (pass_on != kPassUnfinished || !is_for_user_space(scratch->stop) || (int64_t)regs->orig_ax < 0)
    return 0;
  scratch->record.user_stack = user_stack;
  scratch->record.kernel_stack = 0;
  const uint64_t now = bpf_ktime_get_ns();
  return forward_stack(scratch, kRecordPassedWaker, counted, now) ? now : 0;
}

/// Returns the number of the waker of `task`, whose state is `thread`; 0 if there is no room, or if
/// only times of holding are wanted.
static __always_inline uint32_t take_waker(void* context, struct task_struct* task,
                                           struct ThreadState* thread, struct Scratch* scratch,
                                           struct Counts* counted) {
  struct task_struct* current = bpf_get_current_task_btf();
  struct Waking* waking = &thread->waking;
  waking->count = 2;
#pragma unroll
  for (uint32_t i = 0; i < kMaxWakers; ++i)
    waking->copied_ns[i] = 0;
  const bool is_of_lock =
      with_locks && (only_locks || waits_for_futex((const struct pt_regs*)bpf_task_pt_regs(task)));
  const bool is_release = is_of_lock && releases_futex(current, task);
  thread->ended_by_exit = (current->flags & PF_EXITING) != 0;
  thread->ended_by_release = is_release && !thread->ended_by_exit;
  if (is_of_lock && !is_release) {
    waking->words[0] = other_end_of_wait(task, (const struct pt_regs*)bpf_task_pt_regs(task));
    waking->words[1] = 0;
    return number_waker(thread, scratch, counted);
  }
  if (with_held)
    return 0;
  struct ThreadState* of_current = bpf_task_storage_get(&threads, current, 0, 0);
  uint64_t user_stack = 0;
  if (with_user_stacks && current->mm && !(current->flags & PF_KTHREAD)) {
    user_stack =
        take_user_stack(scratch, last_stacks(current, of_current, counted), counted, current->tgid);
    waking->copied_ns[0] = forward_waker(scratch, user_stack, counted);
  }
  const uint64_t kernel_stack = is_of_lock ? 0 : unwind_kernel_stack(context, scratch, counted);
  waking->words[0] = (uint64_t)current->tgid << 32 | (uint32_t)current->pid;
  waking->words[1] = user_stack << 32 | kernel_stack;
  if (max_wakers < 2)
    return number_waker(thread, scratch, counted);
#pragma unroll
  for (uint32_t i = 2; i < 2 * kMaxWakers; ++i)
    waking->words[i] = 0;
  if (of_current && thread->since_ns && of_current->woken_ns > thread->since_ns)
    add_earlier_wakers(waking, &of_current->waking);
  return number_wakers(waking, scratch, counted);
}

// How long threads hold locks.  A thread that a release woke has the lock from the moment at which
// it runs, unless it waits for that lock again.  A lock that was waited for is marked as such, so
// that its next release is a system call.

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
  return held->program == (program & kProgramMask) ? held->since_ns : 0;
}
