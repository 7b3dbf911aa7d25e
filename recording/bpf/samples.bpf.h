// Sends a sample of the current task, with its stack.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/kernel_stack.bpf.h"
#include "recording/bpf/scripts.bpf.h"
#include "recording/bpf/take.bpf.h"

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

/// Sends a sample of the current task.  The caller has set ip, period, cookie and is_kernel_mode of
/// the scratch's record.  Returns whether there was room.
static __always_inline bool take_sample(void* context, struct task_struct* task,
                                        struct Scratch* scratch, struct Counts* counted,
                                        bool has_kernel_stack) {
  const uint32_t tgid = task->tgid;
  struct SampleRecord* record = &scratch->record;
  record->kind = kRecordSample;
  record->cpu = bpf_get_smp_processor_id();
  record->time_ns = bpf_ktime_get_ns();
  record->tgid = tgid;
  record->tid = task->pid;
  record->length = 0;
  record->kernel_stack =
      has_kernel_stack && stack_blocks ? unwind_kernel_stack(context, scratch, counted) : 0;
  record->kernel_frames =
      has_kernel_stack && !stack_blocks ? read_kernel_stack(context, scratch) : 0;
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
