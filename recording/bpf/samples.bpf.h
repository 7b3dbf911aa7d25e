// Sends a sample of the current task, with its stack.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/compare.bpf.h"
#include "recording/bpf/kernel_stack.bpf.h"
#include "recording/bpf/scripts.bpf.h"
#include "recording/bpf/walk.bpf.h"

// Records the current thread's user stacks.  Reuses one of its last ones if its words are
// unchanged; otherwise walks the stack.

/// The code segment of 32-bit programs: arch/x86/include/asm/segment.h, and Xen's.
enum { kUser32Cs = 0x23, kXenUser32Cs = 0xe023 };

/// Values of ProcessMappings::of_kernel.
enum { kNotChecked, kChecked };

/// Whether the memory is unchanged.  `read_bytes` is how much of it is in the window.
static __always_inline bool stands_still(struct Scratch* scratch, const struct History* history,
                                         uint32_t* read_bytes) {
  uint32_t bytes = history->noted.span_bytes;
  KEEP(bytes);
  if (bytes > sizeof scratch->window)
    return false;
  if (bytes > *read_bytes) {
    if (bpf_probe_read_user(scratch->window, bytes, (const void*)history->sp))
      return false;
    *read_bytes = bytes;
  }
  return words_stand(scratch, &history->noted, 0) != 0;
}

/// Whether the mappings belong to the program that the process runs.
static __always_inline bool is_up_to_date(struct ProcessMappings* process, uint32_t tgid) {
  if (process->of_kernel == kChecked)
    return true;
  const struct ExecTimes* times = bpf_map_lookup_elem(&execs, &tgid);
  if (times && process->exec_ns < times->exec_ns)
    return false;
  process->of_kernel = kChecked;
  return true;
}

static __always_inline void start_walk(struct Scratch* scratch, const struct pt_regs* regs) {
  scratch->window_bytes = 0;
  scratch->next_window_bytes = kFirstWindowBytes;
  scratch->ip = regs->ip;
  scratch->sp = scratch->start_sp = regs->sp;
  scratch->fp = regs->bp;
  scratch->fp_at = kInStartRegister;
  scratch->hash = 0;
  scratch->max_place = 0;
  scratch->registers_at = (uint64_t)regs;
  scratch->mapping_bytes = 0;
  scratch->mapping_start = 0;
  scratch->mapping_index = PE_NO_TABLE;
  scratch->count = 0;
  scratch->is_exact = 1;
  scratch->source = kByCfi;
  scratch->uses_fp = 0;
  scratch->places_read = 0;
  scratch->is_unique = 0;
  scratch->header_bits = 0;
  scratch->script_words = 0;
  start_limits(&scratch->limits, kMostNativeNs);
}

/// Stores the walked stack, which has a number, in place of the oldest one.
static __always_inline void remember(struct ThreadStacks* last, const struct Scratch* scratch,
                                     const struct pt_regs* regs, uint64_t generation,
                                     uint32_t number) {
  uint32_t read = scratch->places_read;
  KEEP(read);
  if (scratch->stop != kStopEndOfStack || scratch->is_unique || read > kMaxHistoryWords ||
      read == 0 || scratch->max_place >= kWindowWords)
    return;
  struct History* history = &last->histories[last->next_history & (kHistories - 1)];
  ++last->next_history;
  keep_words(scratch, &history->noted);
  history->ip = regs->ip;
  history->sp = regs->sp;
  history->fp = regs->bp;
  history->uses_fp = scratch->uses_fp;
  history->stack = number;
  history->generation = generation;
}

/// Reduces the frames to the first one.
static __always_inline void only_first_frame(struct Scratch* scratch, const struct pt_regs* regs,
                                             enum StackStop why) {
  start_walk(scratch, regs);
  put_frame(scratch);
  scratch->stop = why;
}

static __always_inline void walk_stack(struct Scratch* scratch, struct ProcessMappings* process,
                                       const struct pt_regs* regs, uint32_t tgid) {
  const uint32_t zero = 0;
  struct RuleTable* table = bpf_map_lookup_elem(&rules, &zero);
  if (!process || !table)
    return only_first_frame(scratch, regs, kStopUnknownProcess);
  const uint64_t code_segment = regs->cs;
  if (code_segment == kUser32Cs || code_segment == kXenUser32Cs)
    return only_first_frame(scratch, regs, kStopNot64Bit);
  if (!is_up_to_date(process, tgid))
    return only_first_frame(scratch, regs, kStopStaleMappings);
  const uint64_t generation = *(volatile uint64_t*)&process->last_generation;
  start_walk(scratch, regs);
  find_return_probes(scratch);
  scratch->stop = kStopTooDeep;
  struct Walk walk = {
      .scratch = scratch, .process = process, .rules = table, .generation = generation};
  bpf_loop(kMaxFrames + 1, step, &walk, 0);
  finish_limits(&scratch->limits);
  if (*(volatile uint64_t*)&process->generation != generation)
    only_first_frame(scratch, regs, kStopChanged);
}

/// Returns the generation of the process's mappings; 0 if they are unknown, or out of date.
static __always_inline uint64_t generation_of(struct ThreadStacks* last, uint32_t tgid) {
  const uint64_t changes =
      *(volatile uint64_t*)&changes_announced + *(volatile uint64_t*)&changes_seen + 1;
  if (last->changes == changes)
    return last->generation;
  struct ProcessMappings* process = bpf_map_lookup_elem(&processes, &tgid);
  last->generation = process && is_up_to_date(process, tgid) ? process->generation : 0;
  last->changes = changes;
  return last->generation;
}

static __always_inline bool begins_alike(const struct History* history, const struct pt_regs* regs,
                                         uint64_t generation) {
  return history->generation == generation && generation != 0 && history->ip == regs->ip &&
         history->sp == regs->sp && (!history->uses_fp || history->fp == regs->bp) &&
         is_current_stack(history->stack);
}

/// Returns the thread's stack if it is one of its last ones; 0 if it is not.  Tries all, because a
/// thread may make system calls at one address, with one stack pointer, from different callers.
static __always_inline uint32_t find_again(struct Scratch* scratch, struct ThreadStacks* last,
                                           const struct pt_regs* regs, uint32_t tgid) {
  const uint64_t generation = generation_of(last, tgid);
  uint32_t read_bytes = 0;
#pragma unroll
  for (int i = 0; i < kHistories; ++i) {
    const struct History* history = &last->histories[i];
    if (begins_alike(history, regs, generation) && stands_still(scratch, history, &read_bytes))
      return history->stack;
  }
  return 0;
}

/// Returns the number of the current thread's user stack; 0 if there was no room for it.  In that
/// case the stack is in the scratch.  In both cases the scratch's `stop` is how the stack ends.
static __always_inline uint32_t take_user_stack(struct Scratch* scratch, struct ThreadStacks* last,
                                                struct Counts* counted, uint32_t tgid) {
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
  ++counted->stacks;
  // The interpreter's frames may have changed while the thread's stack has not.
  const bool has_script = with_scripts && has_scripts && bpf_map_lookup_elem(&scripts, &tgid);
  if (has_script)
    last = 0;
  uint32_t reusable = 0;
  if (last)
    reusable = find_again(scratch, last, regs, tgid);
  if (reusable && !check_reuse) {
    ++counted->reused;
    scratch->stop = kStopEndOfStack;
    return reusable;
  }
  struct ProcessMappings* process = bpf_map_lookup_elem(&processes, &tgid);
  const uint64_t generation = process ? process->generation : 0;
  walk_stack(scratch, process, regs, tgid);
  uint32_t why = scratch->stop;
  KEEP(why);
  if (why < kStackStopCount)
    ++counted->stops[why];
  counted->frames += scratch->count;
  if (has_script)
    append_script(scratch);
  const uint32_t number = number_stack(scratch);
  if (has_script && scratch->script_words && scratch->is_new)
    announce_script(number);
  if (!number && stack_room && !scratch->is_whole)
    ++counted->stacks_full;
  if (check_reuse && reusable) {
    ++counted->reused;
    if (number != reusable)
      ++counted->wrong_reuse;
  }
  if (last && number && !reusable)
    remember(last, scratch, regs, generation, number);
  return number;
}

static __always_inline struct Counts* counts_of_cpu(void) {
  const uint32_t zero = 0;
  return bpf_map_lookup_elem(&counts, &zero);
}

/// Returns the last stacks of a thread, of which a stack is about to be taken; null if it has none.
static __always_inline struct ThreadStacks* last_stacks(struct task_struct* task,
                                                        struct ThreadState* thread,
                                                        struct Counts* counted) {
  if (!with_reuse || !thread || thread->reuse == kReuseEnded)
    return 0;
  if (thread->reuse == kHasStacks)
    return bpf_task_storage_get(&thread_stacks, task, 0, 0);
  if (thread->stacks_taken < kStacksBeforeReuse) {
    ++thread->stacks_taken;
    return 0;
  }
  if (*(volatile uint32_t*)&reusing >= kMaxReusing)
    return 0;
  struct ThreadStacks* last =
      bpf_task_storage_get(&thread_stacks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!last) {
    ++counted->no_storage;
    return 0;
  }
  thread->reuse = kHasStacks;
  __sync_fetch_and_add(&reusing, 1);
  return last;
}

/// A thread ends.
static __always_inline void end_reuse(struct task_struct* task) {
  struct ThreadState* thread = with_reuse ? bpf_task_storage_get(&threads, task, 0, 0) : 0;
  if (!thread)
    return;
  if (thread->reuse == kHasStacks)
    __sync_fetch_and_add(&reusing, -1);
  thread->reuse = kReuseEnded;
}

static __always_inline struct Scratch* scratch_of_cpu(uint32_t use) {
  const uint32_t number = bpf_get_smp_processor_id() * kScratchesOfCpu + use;
  return bpf_map_lookup_elem(&scratches, &number);
}

static __always_inline bool is_target(uint32_t tgid) {
  return !only_targets || is_started_target(tgid);
}

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

/// Whether the reader has not yet sent the mappings that this stack needs.
static __always_inline bool awaits_mappings(uint32_t stop) {
  return stop == kStopUnknownProcess || stop == kStopStaleMappings || stop == kStopUnmapped;
}

/// Returns flags: whether to wake the ring's reader.
static __always_inline uint64_t wakeup(const struct Scratch* scratch) {
  if (!wakeup_bytes)
    return 0;
  // The counters' rings, which have the records of mappings, wake nobody until they fill up: most
  // mappings have no samples.
  const uint64_t now = scratch->record.time_ns;
  if (awaits_mappings(scratch->record.stop) && now - read_ns > kWakeAfterNs) {
    read_ns = now;
    return BPF_RB_FORCE_WAKEUP;
  }
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

/// Sends the record, as `kind`, with the data that user space needs to walk the stack by itself.
__attribute__((noinline)) int send_with_copy(struct Scratch* scratch, uint32_t kind) {
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
  scratch->passed.kind = kind;
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
  return bpf_ringbuf_output(&ring, &scratch->passed, bytes, wakeup(scratch));
}

/// Whether user space may get further.  By the time that it reads the ring, it has seen the records
/// of mappings.  It can also follow all call frame information.
static __always_inline bool is_for_user_space(uint32_t stop) {
  return stop == kStopBadReturnAddress || (stop >= kStopUnsupported && stop <= kStopUnmapped);
}

/// Forwards the current thread's stack, which has ended early in the scratch, as `kind`.  The
/// caller has set the numbers of the record's stacks.  Returns whether there was room.
static __always_inline bool forward_stack(struct Scratch* scratch, uint32_t kind,
                                          struct Counts* counted, uint64_t now) {
  const struct task_struct* current = bpf_get_current_task_btf();
  struct SampleRecord* record = &scratch->record;
  record->cpu = bpf_get_smp_processor_id();
  record->time_ns = now;
  record->tgid = current->tgid;
  record->tid = current->pid;
  record->ip = 0;
  record->period = 0;
  record->cookie = 0;
  record->is_kernel_mode = 0;
  if (!send_with_copy(scratch, kind))
    return true;
  ++counted->ring_full;
  return false;
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
  return bpf_ringbuf_output(&ring, &scratch->record, sizeof scratch->record + bytes,
                            wakeup(scratch));
}

/// Sets the fields of a sample's record that depend on neither its counter nor its stack.
static __always_inline void begin_sample(struct SampleRecord* record,
                                         const struct task_struct* task) {
  record->kind = kRecordSample;
  record->cpu = bpf_get_smp_processor_id();
  record->time_ns = bpf_ktime_get_ns();
  record->tgid = task->tgid;
  record->tid = task->pid;
  record->user_stack = record->kernel_stack = 0;
  record->length = record->kernel_frames = 0;
  record->stop = kStopEndOfStack;
}

/// Sends a sample of the current task without its stack.  The caller has set all fields of its
/// record.  Returns whether there was room.
static __always_inline bool send_thinned(struct task_struct* task, struct SampleRecord* record,
                                         struct Counts* counted) {
  record->kind = kRecordThinned;
  if (record->is_kernel_mode && !with_kernel_stacks && task->mm && !(task->flags & PF_KTHREAD)) {
    record->ip = ((const struct pt_regs*)bpf_task_pt_regs(task))->ip;
    record->is_kernel_mode = 0;
  }
  if (bpf_ringbuf_output(&ring, record, sizeof *record, BPF_RB_NO_WAKEUP))
    return false;
  ++counted->thinned;
  return true;
}

/// Sends a sample of the current task.  The caller has called begin_sample(), and has set ip,
/// period, cookie and is_kernel_mode of the scratch's record.  Returns whether there was room.
static __always_inline bool take_sample(void* context, struct task_struct* task,
                                        struct Scratch* scratch, struct Counts* counted,
                                        bool has_kernel_stack) {
  const uint32_t tgid = task->tgid;
  struct SampleRecord* record = &scratch->record;
  const bool is_whole = !stack_room || samples_are_whole;
  scratch->is_whole = is_whole;
  record->kernel_stack =
      has_kernel_stack && !is_whole ? unwind_kernel_stack(context, scratch, counted) : 0;
  record->kernel_frames = has_kernel_stack && is_whole ? read_kernel_stack(context, scratch) : 0;
  long error;
  if (!task->mm || (task->flags & PF_KTHREAD)) {
    scratch->count = 0;
    scratch->words[0] = 0;
    error = send_whole(scratch);
  } else {
    if (!with_scripts && send_script(scratch) < 0)  // else it becomes a part of the stack
      ++counted->scripts_full;
    struct ThreadState* thread =
        with_reuse && !is_whole
            ? bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE)
            : 0;
    if (with_reuse && !is_whole && !thread)
      ++counted->no_storage;
    record->user_stack =
        take_user_stack(scratch, last_stacks(task, thread, counted), counted, tgid);
    const uint32_t why = scratch->stop;
    record->stop = why;
    if (pass_on == kPassAll ||
        (pass_on == kPassUnfinished && why != kStopEndOfStack && why != kStopTooDeep &&
         (why != kStopNotReadable || scratch->count == 1) && why != kStopOutOfTime))
      error = send_with_copy(scratch, kRecordPassedOn);
    else if (!record->user_stack)
      error = send_whole(scratch);
    else
      error = bpf_ringbuf_output(&ring, record, sizeof *record, wakeup(scratch));
  }
  return !error;
}
