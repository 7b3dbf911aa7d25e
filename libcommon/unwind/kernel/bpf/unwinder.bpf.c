// The programs.  They run on a counter's samples, on switches of tasks, and when processes start
// and end.
// SPDX-License-Identifier: MIT
#include "unwind/kernel/bpf/kernel_stack.bpf.h"
#include "unwind/kernel/bpf/scripts.bpf.h"
#include "unwind/kernel/bpf/take.bpf.h"
#include "unwind/kernel/bpf/wakers.bpf.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

static __always_inline struct Counts* counts_of_cpu(void) {
  const uint32_t zero = 0;
  return bpf_map_lookup_elem(&counts, &zero);
}

static __always_inline struct Scratch* scratch_of_cpu(uint32_t use) {
  const uint32_t number = bpf_get_smp_processor_id() * kScratchesOfCpu + use;
  return bpf_map_lookup_elem(&scratches, &number);
}

static __always_inline bool is_target(uint32_t tgid) {
  return !only_targets || is_started_target(tgid);
}

// --- Samples ----------------------------------------------------------------------------------

struct Pages {
  struct Scratch* scratch;
  uint32_t bytes;
};

/// Copies the next 4096 bytes of the stack.  If that fails, copies up to the end of the page.
static long copy_page(uint32_t i, struct Pages* pages) {
  enum { kPage = 4096 };
  uint32_t at = i * kPage;
  KEEP(at);
  if (at > kPassedStackBytes - kPage)
    return 1;
  struct Scratch* scratch = pages->scratch;
  const uint64_t from = scratch->start_sp + at;
  if (!bpf_probe_read_user(&scratch->passed_stack[at], kPage, (const void*)from)) {
    pages->bytes = at + kPage;
    return 0;
  }
  uint32_t rest = kPage - (from & (kPage - 1));
  KEEP(rest);
  if (rest <= kPage && !bpf_probe_read_user(&scratch->passed_stack[at], rest, (const void*)from))
    pages->bytes = at + rest;
  return 1;
}

/// Returns flags: whether to wake the ring's reader.
static __always_inline uint64_t wakeup(void) {
  if (!wakeup_bytes)
    return 0;
  return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wakeup_bytes ? BPF_RB_FORCE_WAKEUP
                                                                     : BPF_RB_NO_WAKEUP;
}

/// Appends the kernel's frames to the data that is sent.  Returns their size in bytes.
static __always_inline uint32_t append_kernel_frames(struct Scratch* scratch, uint32_t count,
                                                     void* behind) {
  KEEP(count);
  if (count == 0 || count > kMaxKernelFrames ||
      bpf_probe_read_kernel(behind, count * 8, scratch->kernel_frames))
    return 0;
  return count * 8;
}

/// Sends the sample with the data that user space needs to walk the stack by itself.
__attribute__((noinline)) int send_with_copy(struct Scratch* scratch) {
  if (!scratch)
    return -1;
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
  scratch->start_sp = regs->sp;
  struct Pages pages = {.scratch = scratch};
  bpf_loop(kPassedStackBytes / 4096, copy_page, &pages, 0);
  const uint64_t registers = (uint64_t)regs;
#pragma unroll
  for (int number = 0; number < 16; ++number)
    bpf_probe_read_kernel(&scratch->passed_registers[number], 8,
                          (const void*)(registers + 8ULL * kPlacesInPtRegs[number]));
  bpf_probe_read_kernel(&scratch->passed_registers[16], 8, (const void*)(registers + 8ULL * 16));
  scratch->passed = scratch->record;
  scratch->passed.kind = kRecordPassedOn;
  uint32_t bytes = pages.bytes & ~7U;
  KEEP(bytes);
  if (bytes > kPassedStackBytes)
    return -1;
  scratch->passed.length = bytes;
  bytes +=
      append_kernel_frames(scratch, scratch->passed.kernel_frames, &scratch->passed_stack[bytes]);
  bytes += sizeof scratch->passed + sizeof scratch->passed_registers;
  KEEP(bytes);
  if (bytes >
      sizeof scratch->passed + sizeof scratch->passed_registers + sizeof scratch->passed_stack)
    return -1;
  return bpf_ringbuf_output(&ring, &scratch->passed, bytes, wakeup());
}

/// Sends the sample with the stack that had no room.
static __always_inline long send_whole(struct Scratch* scratch) {
  uint32_t words = scratch->count + 1;
  KEEP(words);
  if (words > kMaxFrames + 1)
    return -1;
  scratch->record.kind = kRecordWholeStack;
  scratch->record.length = words;
  uint32_t bytes = words * 8 + append_kernel_frames(scratch, scratch->record.kernel_frames,
                                                    &scratch->words[words]);
  KEEP(bytes);
  if (bytes > sizeof scratch->words)
    return -1;
  return bpf_ringbuf_output(&ring, &scratch->record, sizeof scratch->record + bytes, wakeup());
}

/// Returns the cookie of the counter, or of the counter from which it was inherited.  The kernel
/// does not inherit the cookie (as of Linux 6.18).
static __always_inline uint64_t cookie_of(struct bpf_perf_event_data* context) {
  const uint64_t cookie = bpf_get_attach_cookie(context);
  if (cookie)
    return cookie;
  const struct bpf_perf_event_data_kern* of_kernel = (const void*)context;
  return BPF_CORE_READ(of_kernel, event, parent, bpf_cookie);
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  const uint32_t tgid = task->tgid;
  struct Counts* counted = counts_of_cpu();
  struct Scratch* scratch = scratch_of_cpu(kOfSample);
  if (is_paused || tgid == 0 || !counted || !scratch || !is_target(tgid))
    return 0;
  struct SampleRecord* record = &scratch->record;
  record->kind = kRecordSample;
  record->cpu = bpf_get_smp_processor_id();
  record->time_ns = bpf_ktime_get_ns();
  record->tgid = tgid;
  record->tid = task->pid;
  record->ip = context->regs[16];
  record->period = context->sample_period;
  record->cookie = cookie_of(context);
  record->is_kernel_mode = (context->regs[17] & 3) == 0;
  record->length = 0;
  record->kernel_stack =
      with_kernel_stacks && stack_blocks ? unwind_kernel_stack(context, scratch, counted) : 0;
  record->kernel_frames =
      with_kernel_stacks && !stack_blocks ? read_kernel_stack(context, scratch) : 0;
  record->user_stack = 0;
  record->stop = kStopEndOfStack;
  long error;
  if (!task->mm || (task->flags & PF_KTHREAD)) {
    scratch->count = 0;
    scratch->words[0] = 0;
    error = send_whole(scratch);
  } else {
    if (send_script(scratch) < 0)
      ++counted->scripts_full;
    struct ThreadState* thread =
        with_reuse ? bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) : 0;
    if (with_reuse && !thread)
      ++counted->no_storage;
    record->user_stack = take_user_stack(scratch, thread, counted, tgid);
    const uint32_t why = scratch->stop;
    record->stop = why;
    if (pass_on == kPassAll || (pass_on == kPassUnfinished && why != kStopEndOfStack &&
                                why != kStopTooDeep && why != kStopNotReadable))
      error = send_with_copy(scratch);
    else if (!record->user_stack)
      error = send_whole(scratch);
    else
      error = bpf_ringbuf_output(&ring, record, sizeof *record, wakeup());
  }
  if (error)
    ++counted->ring_full;
  return 0;  // the counter's own buffer gets no record
}

// --- Switches ---------------------------------------------------------------------------------

/// include/linux/sched.h: TASK_DEAD, TASK_IDLE; TASK_REPORT_IDLE, which is the same as TASK_DEAD.
enum {
  kTaskUninterruptible = 0x2,
  kTaskDead = 0x80,
  kTaskReportIdle = 0x80,
  kTaskStates = 0xff,
  kTaskIdle = 0x402
};

/// Returns the state as ps(1) and the tracepoint report it.  States from TASK_NOLOAD on are
/// variants of others (include/linux/sched.h, __task_state_index()).
static __always_inline uint32_t told_state(uint32_t state) {
  if ((state & kTaskIdle) == kTaskIdle)
    return kTaskReportIdle;
  return state && !(state & kTaskStates) ? kTaskUninterruptible : state & kTaskStates;
}

static __always_inline bool is_wanted_state(uint32_t state) {
  return state == 0 ? state_mask & 1 : (state_mask >> 1 & state) != 0;
}

/// Whether user space may get further.  By the time that it reads the ring, it has seen the records
/// of mappings.  It can also follow all call frame information.
static __always_inline bool is_for_user_space(uint32_t stop) {
  return stop == kStopBadReturnAddress || (stop >= kStopUnsupported && stop <= kStopUnmapped);
}

/// Forwards a switch.  Returns 0 if there was no room.
static __always_inline uint32_t pass_switch_on(struct Scratch* scratch,
                                               const struct ThreadState* thread,
                                               struct Counts* counted, uint64_t now) {
  struct SampleRecord* record = &scratch->record;
  record->cpu = bpf_get_smp_processor_id();
  record->time_ns = now;
  record->tgid = thread->key.tgid;
  record->tid = thread->key.tid;
  record->user_stack = thread->key.user_stack;
  record->kernel_stack = thread->key.kernel_stack;
  record->ip = 0;
  record->period = 0;
  record->cookie = 0;
  record->is_kernel_mode = 0;
  if (!send_with_copy(scratch))
    return 1;
  ++counted->ring_full;
  return 0;
}

/// Returns the number of the sum that has this key; 0 if there is no room.
__attribute__((noinline)) uint32_t number_sum(const struct SumKey* key) {
  if (!key)
    return 0;
  const uint32_t* known = bpf_map_lookup_elem(&sum_numbers, key);
  if (known)
    return *known;
  if (next_sum > max_sums)
    return 0;
  const uint32_t number = __sync_fetch_and_add(&next_sum, 1);
  struct KeyedSum* keyed = bpf_map_lookup_elem(&sums, &number);
  if (!keyed || bpf_map_update_elem(&sum_numbers, key, &number, BPF_NOEXIST))
    return 0;
  keyed->key = *key;
  return number;
}

static __always_inline bool is_same_key(const struct SumKey* a, const struct SumKey* b) {
  const uint64_t* x = (const void*)a;
  const uint64_t* y = (const void*)b;
  return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}

/// Adds to the sum of the thread's wait.  Only one of its waits ends at a time.
static __always_inline void add(struct ThreadState* thread, uint64_t ns, uint64_t now) {
  const struct SumKey* key = &thread->key;
  const uint32_t hash = key->user_stack + key->kernel_stack + key->waker + key->state;
  uint32_t* number = &thread->sums[hash & (kThreadSums - 1)];
  struct KeyedSum* keyed = bpf_map_lookup_elem(&sums, number);
  if (!keyed || !is_same_key(&keyed->key, key)) {
    const uint32_t found = number_sum(key);
    keyed = found ? bpf_map_lookup_elem(&sums, &found) : 0;
    if (keyed)
      *number = found;
  }
  if (keyed) {
    keyed->sum.ns += ns;
    keyed->sum.last_ns = now;
    *(volatile uint64_t*)&keyed->sum.count += 1;  // last: see KeyedSum
    return;
  }
  struct Counts* counted = counts_of_cpu();
  if (counted) {
    ++counted->sums_full;
    counted->sums_full_ns += ns;
  }
}

/// Reports the end of a switch that was forwarded; false if there was no room.
static __always_inline bool tell_end(const struct ThreadState* thread, uint64_t since_ns,
                                     uint64_t now) {
  const struct SampleRecord end = {.kind = kRecordWaitEnded,
                                   .time_ns = now,
                                   .tgid = thread->key.tgid,
                                   .tid = thread->key.tid,
                                   .user_stack = thread->key.user_stack,
                                   .kernel_stack = thread->key.kernel_stack,
                                   .ip = thread->key.waker,
                                   .period = now - since_ns,
                                   .cookie = since_ns};
  return !bpf_ringbuf_output(&ring, (void*)&end, sizeof end, 0);
}

static __always_inline void end_wait(struct ThreadState* thread, uint64_t now) {
  const uint64_t since_ns = thread->since_ns;
  const uint64_t ns = now - since_ns;
  thread->since_ns = 0;
  thread->key.waker = thread->key.state ? thread->waker : 0;
  thread->waker = 0;
  if (ns < min_ns || ns > max_ns)
    return;
  if (pass_on == kPassUnfinished && thread->is_passed_on && tell_end(thread, since_ns, now))
    return;
  add(thread, ns, now);
}

/// Ends the wait of a task that leaves its CPU and was not seen to return to one (tracing may be
/// off on that CPU).  The task is assumed to have returned as long ago as it has run since.
static __always_inline void end_unseen_wait(struct ThreadState* thread, uint64_t ran_ns,
                                            uint64_t now) {
  uint64_t since_then = ran_ns - thread->ran_ns;
  const uint64_t most = now - thread->since_ns;
  if (since_then > most)
    since_then = most;
  struct Counts* counted = counts_of_cpu();
  if (counted) {
    ++counted->missed;
    counted->missed_ns += most - since_then;
  }
  end_wait(thread, now - since_then);
}

/// Handles a task that leaves its CPU, on which it is still the current one.
static __always_inline void leave(void* context, struct task_struct* task, uint32_t state,
                                  uint64_t now) {
  const uint32_t tgid = task->tgid;
  if (tgid == 0)
    return;
  // Only targets' threads have storage, so these are not checked again.
  struct ThreadState* thread = bpf_task_storage_get(&threads, task, 0, 0);
  const uint64_t ran_ns = task->se.sum_exec_runtime;
  if (thread && thread->since_ns)
    end_unseen_wait(thread, ran_ns, now);
  if ((state & kTaskDead) || !is_wanted_state(told_state(state)))
    return;
  const bool is_user = task->mm && !(task->flags & PF_KTHREAD);
  struct Counts* counted = counts_of_cpu();
  struct Scratch* scratch = scratch_of_cpu(kOfSwitch);
  if (!counted || !scratch || (!is_user && !with_kernel_threads))
    return;
  if (!thread) {
    if (!is_target(tgid))
      return;
    thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  }
  if (!thread) {
    ++counted->no_storage;
    return;
  }
  thread->key.tgid = tgid;
  thread->key.tid = task->pid;
  thread->key.state = told_state(state);
  thread->ran_ns = ran_ns;
  thread->key.kernel_stack =
      with_kernel_stacks ? take_kernel_stack(context, scratch, thread, counted) : 0;
  thread->key.program = task->self_exec_id;
  thread->key.user_stack = 0;
  thread->key.waker = 0;
  thread->is_passed_on = 0;
  if (is_user && with_user_stacks) {
    thread->key.user_stack = take_user_stack(scratch, thread, counted, tgid);
    if (pass_on == kPassUnfinished && is_for_user_space(scratch->stop))
      thread->is_passed_on = pass_switch_on(scratch, thread, counted, now);
  }
  thread->since_ns = now;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next,
             unsigned int prev_state) {
  const uint64_t now = bpf_ktime_get_ns();
  leave(ctx, prev, preempt ? 0 : prev_state, now);
  if (next->tgid == 0 || (!next->mm && !with_kernel_threads))
    return 0;
  struct ThreadState* thread = bpf_task_storage_get(&threads, next, 0, 0);
  if (!thread || !thread->since_ns)
    return 0;
  end_wait(thread, now);
  return 0;
}

/// A waker may be seen before its task, which is about to leave its CPU, has left it.
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct* task) {
  struct ThreadState* thread = bpf_task_storage_get(&threads, task, 0, 0);
  struct Counts* counted = counts_of_cpu();
  struct Scratch* scratch = scratch_of_cpu(kOfWaking);
  if (thread && counted && scratch && task->pid != 0)
    thread->waker = take_waker(ctx, scratch, counted);
  return 0;
}

/// Writes the tasks that are off their CPUs.
SEC("iter/task")
int on_each_task(struct bpf_iter__task* context) {
  struct task_struct* task = context->task;
  if (!task)
    return 0;
  struct ThreadState* thread = bpf_task_storage_get(&threads, task, 0, 0);
  if (!thread || !thread->since_ns || (task->flags & PF_EXITING))
    return 0;
  struct Outstanding outstanding = {.key = thread->key, .since_ns = thread->since_ns};
  if (outstanding.since_ns)
    bpf_seq_write(context->meta->seq, &outstanding, sizeof outstanding);
  return 0;
}

// --- Processes --------------------------------------------------------------------------------

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct* task) {
  const uint32_t tgid = task->tgid;
  struct ExecTimes* times = bpf_map_lookup_elem(&execs, &tgid);
  const uint64_t now = bpf_ktime_get_ns();
  if (times) {
    times->renamed_ns = now;
    return 0;
  }
  const struct ExecTimes first = {.renamed_ns = now};
  struct Counts* counted = counts_of_cpu();
  if (bpf_map_update_elem(&execs, &tgid, &first, BPF_NOEXIST) && counted)
    ++counted->execs_full;
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  const uint32_t tgid = task->tgid;
  follow_exec(tgid);
  struct ExecTimes* times = bpf_map_lookup_elem(&execs, &tgid);
  if (times)
    times->exec_ns = times->renamed_ns;
  else
    bpf_map_delete_elem(&processes, &tgid);
  bpf_map_delete_elem(&scripts, &tgid);
  struct ProcessMappings* process = bpf_map_lookup_elem(&processes, &tgid);
  if (process)
    process->of_kernel = kNotChecked;
  __sync_fetch_and_add(&changes_seen, 1);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const uint32_t tgid = child->tgid;
  const uint32_t parent_tgid = parent->tgid;
  if (tgid == parent_tgid)
    return 0;
  struct Counts* counted = counts_of_cpu();
  if (only_targets && !follow_fork(parent_tgid, tgid) && counted)
    ++counted->targets_full;
  struct ProcessMappings* process = bpf_map_lookup_elem(&processes, &parent_tgid);
  if (process && is_up_to_date(process, parent_tgid))
    bpf_map_update_elem(&processes, &tgid, process, BPF_NOEXIST);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct* task) {
  const uint32_t tgid = task->tgid;
  if (task->signal->live.counter != 0)
    return 0;
  bpf_map_delete_elem(&processes, &tgid);
  bpf_map_delete_elem(&execs, &tgid);
  bpf_map_delete_elem(&scripts, &tgid);
  return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct* task) {
  forget_freed(task);
  return 0;
}
