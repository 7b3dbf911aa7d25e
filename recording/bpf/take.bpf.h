// Records the current thread's user stacks.  Reuses one of its last ones if its words are
// unchanged; otherwise walks the stack.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/compare.bpf.h"
#include "recording/bpf/numbers.bpf.h"
#include "recording/bpf/scripts.bpf.h"
#include "recording/bpf/walk.bpf.h"

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
  return user_words_stand(scratch, &history->noted) != 0;
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
static __always_inline void remember(struct ThreadState* thread, const struct Scratch* scratch,
                                     const struct pt_regs* regs, uint64_t generation,
                                     uint32_t number) {
  uint32_t read = scratch->places_read;
  KEEP(read);
  if (scratch->stop != kStopEndOfStack || scratch->is_unique || read > kMaxHistoryWords ||
      read == 0 || scratch->max_place >= kWindowWords)
    return;
  struct History* history = &thread->histories[thread->next_history & (kHistories - 1)];
  ++thread->next_history;
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
  struct Walk walk = {.scratch = scratch, .process = process, .rules = table};
  bpf_loop(kMaxFrames + 1, step, &walk, 0);
  finish_limits(&scratch->limits);
  if (*(volatile uint64_t*)&process->generation != generation)
    only_first_frame(scratch, regs, kStopChanged);
}

/// Returns the generation of the process's mappings; 0 if they are unknown, or out of date.
static __always_inline uint64_t generation_of(struct ThreadState* thread, uint32_t tgid) {
  const uint64_t changes =
      *(volatile uint64_t*)&changes_told + *(volatile uint64_t*)&changes_seen + 1;
  if (thread->changes == changes)
    return thread->generation;
  struct ProcessMappings* process = bpf_map_lookup_elem(&processes, &tgid);
  thread->generation = process && is_up_to_date(process, tgid) ? process->generation : 0;
  thread->changes = changes;
  return thread->generation;
}

static __always_inline bool begins_alike(const struct History* history, const struct pt_regs* regs,
                                         uint64_t generation) {
  return history->generation == generation && generation != 0 && history->ip == regs->ip &&
         history->sp == regs->sp && (!history->uses_fp || history->fp == regs->bp);
}

/// Returns the thread's stack if it is one of its last ones; 0 if it is not.  Tries all, because a
/// thread may make system calls at one address, with one stack pointer, from different callers.
static __always_inline uint32_t find_again(struct Scratch* scratch, struct ThreadState* thread,
                                           const struct pt_regs* regs, uint32_t tgid) {
  const uint64_t generation = generation_of(thread, tgid);
  uint32_t read_bytes = 0;
#pragma unroll
  for (int i = 0; i < kHistories; ++i) {
    const struct History* history = &thread->histories[i];
    if (begins_alike(history, regs, generation) && stands_still(scratch, history, &read_bytes))
      return history->stack;
  }
  return 0;
}

/// Returns the number of the current thread's user stack; 0 if there was no room for it.  In that
/// case the stack is in the scratch.  In both cases the scratch's `stop` is how the stack ends.
static __always_inline uint32_t take_user_stack(struct Scratch* scratch, struct ThreadState* thread,
                                                struct Counts* counted, uint32_t tgid) {
  const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
  ++counted->stacks;
  // The interpreter's frames may have changed while the thread's stack has not.
  const bool has_script = with_scripts && has_scripts && bpf_map_lookup_elem(&scripts, &tgid);
  if (has_script)
    thread = 0;
  uint32_t reusable = 0;
  if (thread && with_reuse)
    reusable = find_again(scratch, thread, regs, tgid);
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
  const uint64_t next_number = *(volatile uint64_t*)&next_stack_block;
  if (has_script)
    append_script(scratch);
  const uint32_t number = number_stack(scratch);
  if (has_script && scratch->script_words && number >= next_number)
    tell_script(number);
  if (!number && stack_blocks)
    ++counted->stacks_full;
  if (check_reuse && reusable) {
    ++counted->reused;
    if (number != reusable)
      ++counted->wrong_reuse;
  }
  if (thread && with_reuse && number && !reusable)
    remember(thread, scratch, regs, generation, number);
  return number;
}
