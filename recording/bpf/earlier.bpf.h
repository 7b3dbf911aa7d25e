// The waits that are counted, and their keys.  Finds the waits that began before the recording.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/samples.bpf.h"
#include "recording/bpf/times.bpf.h"
#include "recording/bpf/wakers.bpf.h"

/// include/linux/sched.h: TASK_DEAD, TASK_IDLE; TASK_REPORT_IDLE, which is the same as TASK_DEAD.
enum {
  kTaskInterruptible = 0x1,
  kTaskUninterruptible = 0x2,
  kTaskDead = 0x80,
  kTaskReportIdle = 0x80,
  kTaskStates = 0xff,
  kTaskIdle = 0x402
};

/// Returns the state as ps(1) and the tracepoint report it.  States from TASK_NOLOAD on are
/// variants of others (include/linux/sched.h, __task_state_index()).
static __always_inline uint32_t reported_state(uint32_t state) {
  if ((state & kTaskIdle) == kTaskIdle)
    return kTaskReportIdle;
  return state && !(state & kTaskStates) ? kTaskUninterruptible : state & kTaskStates;
}

static __always_inline bool is_wanted_state(uint32_t state) {
  return state == 0 ? state_mask & 1 : (state_mask >> 1 & state) != 0;
}

static __always_inline bool is_user_task(const struct task_struct* task) {
  return task->mm && !(task->flags & PF_KTHREAD);
}

/// Whether a task in `state` waits for a futex.  A page fault on the way to the wait cannot be
/// interrupted by signals.
static __always_inline bool waits_for_lock(struct task_struct* task, uint32_t state) {
  return (state & kTaskInterruptible) && is_user_task(task) &&
         waits_for_futex((const struct pt_regs*)bpf_task_pt_regs(task));
}

/// Whether waits of a task in `state` are counted.
static __always_inline bool is_wanted_wait(struct task_struct* task, uint32_t state) {
  const bool is_user = is_user_task(task);
  if ((state & kTaskDead) || !is_wanted_state(reported_state(state)) ||
      (!is_user && !with_kernel_threads))
    return false;
  return !only_locks || waits_for_lock(task, state);
}

/// Sets the key of a wait that begins; its stacks are not known yet.
static __always_inline void begin_key(struct ThreadState* thread, struct task_struct* task,
                                      uint32_t state) {
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(task);
  const bool is_user = is_user_task(task);
  thread->key.tgid = task->tgid;
  thread->key.tid = task->pid;
  thread->key.state = reported_state(state);
  thread->key.kind = with_times ? kind_of_wait(thread, regs, is_user, state) : kWaitOther;
  thread->key.program = task->self_exec_id;
  thread->key.kernel_stack = thread->key.user_stack = 0;
  thread->key.waker = 0;
  const bool has_lock = with_locks && (only_locks || waits_for_lock(task, state));
  thread->key.lock = has_lock ? futex_of(regs) & ~1ULL : 0;
  thread->ran_ns = task->se.sum_exec_runtime;
  if (with_times)
    thread->delay_ns = delay_of(task);
}

/// The memory of on_earlier_wait(), which one thread runs at a time.
struct EarlierScratch {
  struct Scratch of_stack;
  struct EarlierWait wait;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct EarlierScratch);
} earlier_scratch SEC(".maps");

static __always_inline bool is_on_cpu(const struct task_struct* task) {
  return *(const volatile unsigned int*)&task->on_cpu != 0;
}

/// Returns the state in which a task has been since before the recording.  If it has been woken
/// since, it waited, and now waits for a CPU.
static __always_inline uint32_t earlier_state(const struct task_struct* task) {
  const uint32_t state = *(const volatile uint32_t*)&task->__state;
  return with_times && !state && was_queued_after(task, began_ns) ? kTaskInterruptible : state;
}

/// Returns the number of the kernel's stack of a task that is off its CPU; 0 if there is none, or
/// no room.
static __always_inline uint32_t earlier_kernel_stack(struct task_struct* task,
                                                     struct Scratch* scratch,
                                                     struct Counts* counted) {
  const long bytes =
      bpf_get_task_stack(task, &scratch->words[1], kMaxKernelFrames * sizeof(uint64_t), 0);
  return number_kernel_stack(bytes, scratch, counted);
}

/// Notes the registers with which a thread has entered the kernel, for user space to walk its
/// stack.
static __always_inline void note_registers(struct task_struct* task, struct EarlierWait* wait) {
  const uint64_t registers = (uint64_t)bpf_task_pt_regs(task);
#pragma unroll
  for (int number = 0; number < 16; ++number)
    bpf_probe_read_kernel(&wait->registers[number], sizeof(uint64_t),
                          (const void*)(registers + 8ULL * kPlacesInPtRegs[number]));
  bpf_probe_read_kernel(&wait->registers[16], sizeof(uint64_t),
                        (const void*)(registers + 8ULL * 16));
  wait->thread_pointer = task->thread.fsbase;
}

/// Whether user space can walk the stack of a task.
static __always_inline bool has_user_stack(const struct task_struct* task) {
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs((struct task_struct*)task);
  const uint64_t code_segment = regs->cs;
  return with_user_stacks && is_user_task(task) && code_segment != kUser32Cs &&
         code_segment != kXenUser32Cs;
}
