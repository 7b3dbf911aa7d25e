// The programs.  They run on a counter's samples, on switches of tasks, and when processes start
// and end.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "recording/bpf/earlier.bpf.h"
#include "recording/bpf/hits.bpf.h"
#include "recording/bpf/kernel_locks.bpf.h"
#include "recording/bpf/samples.bpf.h"
#include "recording/bpf/sums.bpf.h"
#include "recording/bpf/thinning.bpf.h"
#include "recording/bpf/times.bpf.h"
#include "recording/bpf/wakers.bpf.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

// --- Samples ----------------------------------------------------------------------------------

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
  struct Counts* counted = counts_of_cpu();
  struct Scratch* scratch = scratch_of_cpu(kOfSample);
  if (is_paused || task->tgid == 0 || !counted || !scratch || !is_target(task->tgid))
    return 0;
  begin_sample(&scratch->record, task);
  scratch->record.ip = context->regs[16];
  scratch->record.period = context->sample_period;
  scratch->record.cookie = cookie_of(context);
  scratch->record.is_kernel_mode = (context->regs[17] & 3) == 0;
  scratch->record.running = 0;
  if (with_times) {
    struct ThreadState* thread =
        bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (thread)
      start_running(thread, scratch->record.time_ns);  // it may run since before the recording
    const uint32_t others = *(volatile uint64_t*)&activity & RUNNING_MASK;
    scratch->record.running = others < 1 ? 1 : others;
  }
  struct Thinning* thinning_here = thinning_of_cpu();
  bool is_sent;
  if (thinning_here && !earn(thinning_here, scratch->record.time_ns)) {
    is_sent = send_thinned(task, &scratch->record, counted);
  } else {
    is_sent = take_sample(context, task, scratch, counted, with_kernel_stacks);
    if (thinning_here)
      pay(thinning_here, bpf_ktime_get_ns() - scratch->record.time_ns);
  }
  if (!is_sent)
    ++*(with_times ? &counted->samples_full : &counted->ring_full);
  return 0;  // the counter's own buffer gets no record
}

/// Runs whenever a thread passes a probe, on any CPU: uprobes and kprobes.
SEC("kprobe")
int on_hit(struct pt_regs* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct Counts* counted = counts_of_cpu();
  if (is_paused || task->tgid == 0 || !counted || !is_target(task->tgid))
    return 0;
  struct Scratch* scratch = take_hit_scratch();
  bool is_sent = false;
  if (scratch) {
    begin_sample(&scratch->record, task);
    scratch->record.ip = context->ip;
    scratch->record.cookie = bpf_get_attach_cookie(context);
    scratch->record.period =
        weight_of((const struct pt_regs*)bpf_task_pt_regs(task), scratch->record.cookie);
    scratch->record.is_kernel_mode = (context->cs & 3) == 0;
    is_sent = take_sample(context, task, scratch, counted,
                          with_kernel_stacks && scratch->record.is_kernel_mode);
    *(volatile uint32_t*)&scratch->is_busy = 0;
  }
  if (!is_sent)
    __sync_fetch_and_add(&counted->ring_full, 1);
  return 0;  // the counter's own buffer gets no record
}

// --- Switches ---------------------------------------------------------------------------------

/// Returns when the thread's wait started, which is then no longer outstanding; 0 if none is.  The
/// task's CPU and on_each_task() may call it at once: one of them gets the wait.
static __always_inline uint64_t take_wait(struct ThreadState* thread) {
  const uint64_t since_ns = thread->since_ns;
  const bool has_it =
      since_ns && __sync_val_compare_and_swap(&thread->since_ns, since_ns, 0) == since_ns;
  return has_it ? since_ns : 0;
}

/// `woken_ns` and `silent_ns` are as in EndedWait.
static __always_inline void end_wait(struct ThreadState* thread, uint64_t since_ns,
                                     uint64_t woken_ns, uint64_t silent_ns, uint64_t now) {
  const uint64_t ns = now - since_ns;
  thread->key.waker = thread->key.state ? thread->waker : 0;
  if (thread->key.lock)
    thread->key.lock |= thread->ended_by_exit;
  thread->ended_by_exit = 0;
  const bool has_lock = with_held && thread->ended_by_release;
  thread->ended_by_release = 0;
  if (max_wakers > 1) {
    thread->woken_ns = now;
    if (!thread->waker)
      thread->waking.count = 0;
  }
  thread->waker = 0;
  if (has_lock)
    begin_hold(thread, now);
  if (with_held || ns < min_ns || ns > max_ns)
    return;
  if (with_times)
    return end_timed_wait(thread, since_ns, woken_ns, silent_ns, now);
  if (is_reported(thread) && send_end(thread, since_ns, now, 0, now))
    return;
  const struct Sum more = {.ns = ns, .last_ns = now};
  add(thread, &thread->key, &more);
}

/// Ends the wait of a task that leaves its CPU and was not seen to return to one (tracing may be
/// off on that CPU).  The task is assumed to have returned as long ago as it has run since.
static __always_inline void end_unseen_wait(struct ThreadState* thread,
                                            const struct task_struct* task, uint64_t since_ns,
                                            uint64_t now) {
  uint64_t since_then = task->se.sum_exec_runtime - thread->ran_ns;
  const uint64_t most = now - since_ns;
  if (since_then > most)
    since_then = most;
  struct Counts* counted = counts_of_cpu();
  if (counted) {
    ++counted->missed;
    counted->missed_ns += most - since_then;
  }
  const uint64_t end_ns = now - since_then;
  const uint64_t woken_ns = with_times ? ready_since(task, thread->delay_ns, 0, end_ns) : 0;
  end_wait(thread, since_ns, woken_ns, 0, end_ns);
}

/// Handles a task that leaves its CPU, on which it is still the current one.
static __always_inline void leave(void* context, struct task_struct* task, uint32_t state,
                                  uint64_t now) {
  const uint32_t tgid = task->tgid;
  if (tgid == 0)
    return;
  // Only targets' threads have storage, so these are not checked again.
  struct ThreadState* thread = bpf_task_storage_get(&threads, task, 0, 0);
  const uint64_t unseen_ns = thread ? take_wait(thread) : 0;
  if (unseen_ns)
    end_unseen_wait(thread, task, unseen_ns, now);
  if (with_times && thread)
    stop_running(thread, now);
  if (!is_wanted_wait(task, state))
    return;
  struct Counts* counted = counts_of_cpu();
  struct Scratch* scratch = scratch_of_cpu(kOfSwitch);
  if (!counted || !scratch)
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
  begin_key(thread, task, state);
  struct ThreadStacks* last = last_stacks(task, thread, counted);
  thread->key.kernel_stack =
      with_kernel_stacks ? take_kernel_stack(context, scratch, last, counted) : 0;
  thread->is_passed_on = 0;
  if (with_user_stacks && is_user_task(task)) {
    thread->key.user_stack = take_user_stack(scratch, last, counted, tgid);
    scratch->record.user_stack = thread->key.user_stack;
    scratch->record.kernel_stack = thread->key.kernel_stack;
    if (pass_on == kPassUnfinished && is_for_user_space(scratch->stop))
      thread->is_passed_on = forward_stack(scratch, kRecordPassedOn, counted, now);
  }
  if (with_held)
    forget_hold(thread, thread->key.lock);
  KEEP_ORDER();  // see on_each_task()
  thread->since_ns = now;
}

/// A thread that has waited since before the recording runs, after no thread had run.
static __always_inline void end_earlier_wait(struct ThreadState* thread, struct task_struct* task,
                                             uint64_t woken_ns, uint64_t silent_ns, uint64_t now) {
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(task);
  if (woken_ns < silent_ns)
    woken_ns = silent_ns;
  thread->key =
      (struct SumKey){.tgid = task->tgid,
                      .tid = task->pid,
                      .kind = kind_of_wait(thread, regs, task->mm != 0, kTaskInterruptible),
                      .program = task->self_exec_id};
  const struct Sum more = {
      .last_ns = now, .silent_ns = now - silent_ns, .silent_ready_ns = now - woken_ns};
  add(thread, &thread->key, &more);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next,
             unsigned int prev_state) {
  const uint64_t now = bpf_ktime_get_ns();
  const uint64_t ahead_ns = with_times ? compare_clocks(prev, now) : 0;
  leave(ctx, prev, preempt ? 0 : prev_state, now);
  if (next->tgid == 0 || (!next->mm && !with_kernel_threads))
    return 0;
  struct ThreadState* thread = bpf_task_storage_get(&threads, next, 0, 0);
  if (with_times && !thread && is_target(next->tgid))
    thread = bpf_task_storage_get(&threads, next, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!thread)
    return 0;
  const uint64_t silent_ns = with_times ? start_running(thread, now) : 0;
  const uint64_t since_ns = take_wait(thread);
  // Volatile, because for the verifier one instruction must not read either kind of memory.
  const uint64_t noted_ns = *(volatile uint64_t*)&thread->delay_ns;
  const uint64_t delay_ns = since_ns ? noted_ns : delay_of(next);
  const uint64_t woken_ns = with_times ? ready_since(next, delay_ns, ahead_ns, now) : 0;
  if (since_ns)
    end_wait(thread, since_ns, woken_ns, silent_ns, now);
  else if (silent_ns && silent_ns < now)
    end_earlier_wait(thread, next, woken_ns, silent_ns, now);
  return 0;
}

/// A waker may be seen before its task, which is about to leave its CPU, has left it.
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct* task) {
  const bool is_of_lock =
      with_locks && waits_for_futex((const struct pt_regs*)bpf_task_pt_regs(task));
  if (only_locks && !is_of_lock)
    return 0;
  struct ThreadState* thread = bpf_task_storage_get(&threads, task, 0, 0);
  struct Counts* counted = counts_of_cpu();
  struct Scratch* scratch = scratch_of_cpu(kOfWaking);
  // The last waker counts: a thread that was woken before it left its CPU stays on it.
  if (!with_wakers && !is_of_lock)
    return 0;
  if (thread && counted && scratch && task->pid != 0)
    thread->waker = take_waker(ctx, task, thread, scratch, counted);
  return 0;
}

/// The current thread may release a lock.
SEC("tp_btf/sys_enter")
int BPF_PROG(on_call, struct pt_regs* regs, long call) {
  if (!is_release_call(regs, call))
    return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  struct ThreadState* thread = bpf_task_storage_get(&threads, task, 0, 0);
  struct SumKey key = {0};
  const uint64_t since_ns = thread ? end_hold(task, thread, regs->di & ~1ULL, &key) : 0;
  if (!since_ns)
    return 0;
  const uint64_t now = bpf_ktime_get_ns();
  const uint64_t ns = now - since_ns;
  if (ns >= min_ns && ns <= max_ns) {
    const struct Sum more = {.ns = ns, .last_ns = now};
    add(thread, &key, &more);
  }
  return 0;
}

/// Writes and takes the waits of tasks that are off their CPUs.  Switches continue, so a wait that
/// ends meanwhile is either taken here or counted.
SEC("iter/task")
int on_each_task(struct bpf_iter__task* context) {
  // kernel/bpf/bpf_iter.c, bpf_seq_read(): the kernel discards the output, and repeats the task.
  enum { kDone = 0, kRepeat = 1 };
  struct task_struct* task = context->task;
  struct ThreadState* thread = task ? bpf_task_storage_get(&threads, task, 0, 0) : 0;
  struct Outstanding outstanding = {.since_ns =
                                        thread ? *(volatile uint64_t*)&thread->since_ns : 0};
  if (!outstanding.since_ns) {
    states_found += thread != 0;
    return kDone;
  }
  KEEP_ORDER();  // the key does not change until the wait is taken
  outstanding.key = thread->key;
  if (bpf_seq_write(context->meta->seq, &outstanding, sizeof outstanding))
    return kDone;  // no room: the kernel repeats the task
  if (take_wait(thread) != outstanding.since_ns)
    return kRepeat;
  ++states_found;
  return kDone;
}

/// Writes the numbers that the states of threads have from before the last renewal.
SEC("iter/task")
int on_each_reference(struct bpf_iter__task* context) {
  struct task_struct* task = context->task;
  const struct ThreadState* thread = task ? bpf_task_storage_get(&threads, task, 0, 0) : 0;
  struct References references;
  if (thread && note_references(thread, &references))
    bpf_seq_write(context->meta->seq, &references, sizeof references);
  return 0;  // without room, the kernel repeats the task
}

/// Writes the waits that began before the recording, at began_ns.  Switches are recorded already:
/// who has left its CPU since then is left out.
SEC("iter/task")
int on_earlier_wait(struct bpf_iter__task* context) {
  enum { kDone = 0, kRepeat = 1 };  // as in on_each_task()
  struct task_struct* task = context->task;
  const uint32_t zero = 0;
  struct EarlierScratch* scratch = bpf_map_lookup_elem(&earlier_scratch, &zero);
  struct Counts* counted = counts_of_cpu();
  if (!task || !scratch || !counted || task->tgid == 0 || !is_target(task->tgid) || is_on_cpu(task))
    return kDone;
  struct ThreadState* thread =
      bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!thread) {
    ++counted->no_storage;
    return kDone;
  }
  const uint32_t state = earlier_state(task);
  if (!is_wanted_wait(task, state))
    return kDone;
  const uint32_t kernel_stack =
      with_kernel_stacks ? earlier_kernel_stack(task, &scratch->of_stack, counted) : 0;
  struct EarlierWait* wait = &scratch->wait;
  wait->has_user_stack = has_user_stack(task);
  note_registers(task, wait);
  if (*(volatile uint64_t*)&thread->since_ns || is_on_cpu(task))
    return kDone;
  begin_key(thread, task, state);
  thread->key.kernel_stack = kernel_stack;
  thread->is_passed_on = wait->has_user_stack;
  wait->outstanding.key = thread->key;
  wait->outstanding.since_ns = began_ns;
  if (bpf_seq_write(context->meta->seq, wait, sizeof *wait))
    return kDone;  // no room: the kernel repeats the task
  return __sync_val_compare_and_swap(&thread->since_ns, 0, began_ns) ? kRepeat : kDone;
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

/// Sends the command line of a process that has executed a program.  Its memory is present: the
/// kernel has just written it.
static __always_inline void send_command_line(struct task_struct* task, uint64_t exec_ns) {
  const uint64_t start = BPF_CORE_READ(task, mm, arg_start);
  uint64_t length = BPF_CORE_READ(task, mm, arg_end) - start;
  struct Counts* counted = counts_of_cpu();
  struct CommandLineRecord* sent = bpf_ringbuf_reserve(&ring, sizeof *sent, 0);
  if (!sent) {
    if (counted)
      ++counted->commands_full;
    return;
  }
  KEEP(length);
  if (length > sizeof sent->words)
    length = sizeof sent->words;
  sent->record = (struct SampleRecord){.kind = kRecordCommandLine,
                                       .time_ns = bpf_ktime_get_ns(),
                                       .tgid = task->tgid,
                                       .tid = task->tgid,
                                       .period = exec_ns,
                                       .cookie = BPF_CORE_READ(task, real_parent, tgid),
                                       .length = length};
  bpf_get_current_comm(sent->name, sizeof sent->name);
  // The reader is woken by the exec's own record.
  if (bpf_probe_read_user(sent->words, length, (const void*)start))
    bpf_ringbuf_discard(sent, BPF_RB_NO_WAKEUP);
  else
    bpf_ringbuf_submit(sent, BPF_RB_NO_WAKEUP);
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
  if (times && pass_on != kPassNothing && (!only_targets || is_started_target(tgid)))
    send_command_line(task, times->exec_ns);
  // Its first wait may come before a sample, or before user space knows it.
  if (with_scripts && (!only_targets || is_started_target(tgid)))
    find_program_script(task);
  struct ProcessMappings* process = bpf_map_lookup_elem(&processes, &tgid);
  if (process)
    process->of_kernel = kNotChecked;
  __sync_fetch_and_add(&changes_seen, 1);
  return 0;
}

static __always_inline void begin_process(uint32_t parent_tgid, uint32_t tgid) {
  struct Counts* counted = counts_of_cpu();
  if (only_targets && !follow_fork(parent_tgid, tgid) && counted)
    ++counted->targets_full;
  struct ProcessMappings* process = bpf_map_lookup_elem(&processes, &parent_tgid);
  if (process && is_up_to_date(process, parent_tgid))
    bpf_map_update_elem(&processes, &tgid, process, BPF_NOEXIST);
  fork_script(parent_tgid, tgid);
}

/// A new thread waits for a CPU.
static __always_inline void begin_life(struct task_struct* task) {
  struct ThreadState* thread =
      bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!thread)
    return;
  thread->key = (struct SumKey){
      .tgid = task->tgid, .tid = task->pid, .kind = kWaitReady, .program = task->self_exec_id};
  KEEP_ORDER();  // see on_each_task()
  thread->since_ns = bpf_ktime_get_ns();
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const uint32_t tgid = child->tgid, parent_tgid = parent->tgid;
  if (tgid != parent_tgid)
    begin_process(parent_tgid, tgid);
  if (with_times && is_target(tgid))
    begin_life(child);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct* task) {
  const uint32_t tgid = task->tgid;
  end_reuse(task);
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
