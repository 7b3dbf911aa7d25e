// Divides the time of the targets' threads: what a thread waits for, how long it waits for a CPU
// after that, and when no thread runs at all.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/call_kinds.h"
#include "recording/bpf/maps.bpf.h"

/// Returns what a system call waits for, if it waits in a state that signals interrupt.
static __always_inline uint32_t kind_of_call(uint64_t call) {
#define KIND_OF_CALL(number, name, kind) \
  case number:                           \
    return kind;
  switch (call) {
    PE_WAITING_CALLS(KIND_OF_CALL)
    default:
      return kWaitOther;
  }
#undef KIND_OF_CALL
}

/// Whether a call that waits for descriptors has none, so that only a time or a signal ends it.
static __always_inline bool has_no_descriptors(const struct pt_regs* regs) {
  switch (regs->orig_ax) {
    case 7:    // poll
    case 271:  // ppoll
      return regs->si == 0;
    case 23:   // select
    case 270:  // pselect6
      return (regs->si | regs->dx | regs->r10) == 0;
    default:
      return false;
  }
}

/// Returns what a thread that leaves its CPU in `state` waits for.
static __always_inline uint32_t kind_of_wait(struct ThreadState* thread, const struct pt_regs* regs,
                                             bool is_user, uint32_t state) {
  enum { kUninterruptible = 0x2, kStopped = 0x4, kTraced = 0x8, kSegmentOf64Bit = 0x33 };
  if (state == 0)
    return kWaitReady;
  if (!is_user || (state & (kStopped | kTraced)))
    return kWaitOther;
  if (thread->kernel_lock)
    return kWaitLock;
  // Whatever enters the kernel without a call leaves this mark (arch/x86/entry/entry_64.S).
  if (regs->orig_ax == ~0UL)
    return kWaitFault;
  enum { kRestartCall = 219 };  // after a stop
  if (regs->orig_ax == kRestartCall)
    return thread->call_kind;
  // Calls of 32-bit programs have other numbers.
  const uint32_t kind =
      (regs->cs & 0xffff) == kSegmentOf64Bit ? kind_of_call(regs->orig_ax) : kWaitOther;
  thread->call_kind = kind == kWaitOther && (state & kUninterruptible) ? kWaitIo
                      : kind == kWaitIo && has_no_descriptors(regs)    ? kWaitSleep
                                                                       : kind;
  return thread->call_kind;
}

// `activity` has the number of running threads, in its lowest bits, and above them the low bits of
// the time at which the number last fell.  Both change together, so a thread that starts never sees
// the start of an earlier silence.

enum { kTimeBits = 64 - kRunningBits };
#define RUNNING_MASK ((1ULL << kRunningBits) - 1)

/// The thread has come to a CPU.  Returns since when no thread of the targets had run; 0: one ran.
static __always_inline uint64_t start_running(struct ThreadState* thread, uint64_t now) {
  if (thread->is_running)
    return 0;
  thread->is_running = 1;
  const uint64_t before = __sync_fetch_and_add(&activity, 1);
  const uint64_t silent_ns = ((now << kRunningBits) - (before & ~RUNNING_MASK)) >> kRunningBits;
  // Another CPU may have noted a time after `now`.
  return (before & RUNNING_MASK) || silent_ns >> (kTimeBits - 1) ? 0 : now - silent_ns;
}

static __always_inline void stop_running(struct ThreadState* thread, uint64_t now) {
  enum { kTries = 16 };
  if (!thread->is_running)
    return;
  thread->is_running = 0;
  for (uint32_t i = 0; i < kTries; ++i) {
    const uint64_t before = *(volatile uint64_t*)&activity;
    const uint64_t after = now << kRunningBits | ((before - 1) & RUNNING_MASK);
    if (__sync_val_compare_and_swap(&activity, before, after) == before)
      return;
  }
  __sync_fetch_and_add(&activity, -1);  // the other CPUs have noted times that are as late
}

// The kernel notes when it puts a thread into a queue of runnable threads, and for how long threads
// waited in them: /proc/PID/schedstat has these figures.  They need no program that runs whenever a
// thread is woken.  Their clock is the scheduler's, which BPF programs cannot read.  But the kernel
// also notes when the thread came to this CPU that now leaves it, and that switch read our clock.

/// Of this CPU: the last switch, and what our clock (CLOCK_MONOTONIC) then was ahead of the
/// scheduler's.  0: not known yet.
struct SwitchClock {
  uint64_t switched_ns, ahead_ns;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct SwitchClock);
} switch_clocks SEC(".maps");

static __always_inline bool has_queue_times(const struct task_struct* task) {
  return bpf_core_field_exists(task->sched_info.last_queued);  // CONFIG_SCHED_INFO
}

/// Returns for how long the task has waited for CPUs in its life, when it last came to one.
static __always_inline uint64_t delay_of(const struct task_struct* task) {
  return has_queue_times(task) ? task->sched_info.run_delay : 0;
}

/// To be called at each switch.  Returns what our clock is ahead.
static __always_inline uint64_t compare_clocks(const struct task_struct* prev, uint64_t now) {
  const uint32_t zero = 0;
  struct SwitchClock* of_cpu = bpf_map_lookup_elem(&switch_clocks, &zero);
  if (!of_cpu || !has_queue_times(prev))
    return 0;
  if (prev->pid != 0 && of_cpu->switched_ns)  // the kernel notes nothing of the idle task
    of_cpu->ahead_ns = of_cpu->switched_ns - prev->sched_info.last_arrival;
  of_cpu->switched_ns = now;
  return of_cpu->ahead_ns;
}

/// Whether a task that is in a queue of runnable threads came there later than at `ns`.
static __always_inline bool was_queued_after(const struct task_struct* task, uint64_t ns) {
  const uint32_t zero = 0;
  const struct SwitchClock* of_cpu = bpf_map_lookup_elem(&switch_clocks, &zero);
  // The CPU may be another one than the task's, but the clocks of CPUs differ by microseconds.
  return of_cpu && of_cpu->ahead_ns && has_queue_times(task) &&
         task->sched_info.last_queued + of_cpu->ahead_ns > ns;
}

/// Returns since when a thread that comes to this CPU waited for one.  `delay_ns` is for how long
/// it had waited for CPUs before its wait.
static __always_inline uint64_t ready_since(const struct task_struct* task, uint64_t delay_ns,
                                            uint64_t ahead_ns, uint64_t now) {
  if (!has_queue_times(task))
    return now;
  uint64_t since_ns = now;
  const uint64_t queued = task->sched_info.last_queued;  // 0: not any more
  if (queued && ahead_ns && queued + ahead_ns < now)
    since_ns = queued + ahead_ns;
  const uint64_t before_ns = delay_of(task) - delay_ns;  // in queues of other CPUs
  return before_ns < since_ns ? since_ns - before_ns : 0;
}
