// Reads the user's stack, a window of it at once.  Notes every word that a walk reads, so that the
// same stack can be identified later.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/limits.bpf.h"

/// Values of Scratch::fp_at that are not addresses.
enum { kInFp, kInStartRegister };

/// Reads the word at `avma` into read_value, and the words around it into the window.  This is a
/// global function, because the verifier checks those once, not on each path that leads to them.
__attribute__((noinline)) int read_anew(struct Scratch* scratch, uint64_t avma) {
  if (!scratch)
    return -1;
  scratch->window_bytes = 0;
  if (!(avma & 7)) {
    // Frame pointers may be saved a little below the return address.
    const uint64_t below = avma - 64;
    const uint64_t bottom = scratch->sp & ~7ULL;
    const uint64_t start = below < bottom || below > avma ? bottom : below;
    uint32_t bytes = scratch->next_window_bytes;
    KEEP(bytes);
    if (bytes > sizeof scratch->window)
      bytes = sizeof scratch->window;
    scratch->next_window_bytes = sizeof scratch->window;
    long error = bpf_probe_read_user(scratch->window, bytes, (const void*)start);
    if (error) {  // perhaps the stack's end: read to the end of the page
      bytes = 4096 - (start & 4095);
      KEEP(bytes);
      if (bytes > sizeof scratch->window)
        bytes = sizeof scratch->window;
      error = bpf_probe_read_user(scratch->window, bytes, (const void*)start);
    }
    const uint64_t distance = avma - start;
    if (!error && distance < (bytes & ~7U)) {
      scratch->window_start = start;
      scratch->window_bytes = bytes & ~7U;
      scratch->read_value = scratch->window[distance >> 3 & (kWindowWords - 1)];
      return 0;
    }
  }
  if (!bpf_probe_read_user(&scratch->read_value, 8, (const void*)avma))
    return 0;
  count_fault(&scratch->limits);
  return -1;
}

/// Reads the word at `avma`; false if it is unreadable.
static __always_inline bool read_word(struct Scratch* scratch, uint64_t avma, uint64_t* word) {
  const uint64_t distance = avma - scratch->window_start;
  if (distance < scratch->window_bytes && !(distance & 7)) {
    *word = scratch->window[distance >> 3 & (kWindowWords - 1)];
  } else {
    if (read_anew(scratch, avma))
      return false;
    *word = scratch->read_value;
  }
  if (scratch->is_whole)
    return true;  // nothing will be compared with it
  const uint32_t read = scratch->places_read;
  const uint64_t from_start = avma - scratch->start_sp;
  const uint64_t place = from_start >> 3;
  if (from_start & 7)
    scratch->is_unique = 1;
  scratch->places[read & (kHistoryWords - 1)] = place;
  scratch->values[read & (kHistoryWords - 1)] = *word;
  if (place > scratch->max_place)
    scratch->max_place = place;
  scratch->places_read = read + 1;
  return true;
}

/// Makes fp the frame pointer of the current frame.  It is read only if a rule needs it.  Callers
/// keep counters in that register, and a changed word makes a stack a different one.
static __always_inline bool need_fp(struct Scratch* scratch) {
  const uint64_t avma = scratch->fp_at;
  scratch->fp_at = kInFp;
  if (avma == kInFp)
    return true;
  if (avma == kInStartRegister) {
    scratch->uses_fp = 1;
    return true;
  }
  uint64_t word;
  if (!read_word(scratch, avma, &word))
    return false;
  scratch->fp = word;
  return true;
}

// Finds the true return addresses of functions on which another tool has return probes.
//
// While such a function runs, the kernel has replaced its return address by that of a trampoline,
// in the mapping "[uprobes]".  The true address is in the thread's list of return instances,
// innermost first, together with the place on the stack (prepare_uretprobe() in
// kernel/events/uprobes.c, Linux 5.18 to 6.18).

enum { kMostReturnProbes = 64 };  // MAX_URETPROBE_DEPTH

/// Stores the list and the trampoline of the current thread in the scratch.
static __always_inline void find_return_probes(struct Scratch* scratch) {
  scratch->return_probe = 0;
  const struct task_struct* task = bpf_get_current_task_btf();
  if (!bpf_core_field_exists(task->utask) ||
      !bpf_core_field_exists(task->mm->uprobes_state.xol_area->vaddr) ||
      !bpf_core_field_exists(task->utask->return_instances->orig_ret_vaddr))
    return;  // a kernel without user probes
  const struct uprobe_task* probed = task->utask;
  const struct mm_struct* mm = task->mm;
  if (!probed || !mm)
    return;
  scratch->return_probe = (uint64_t)probed->return_instances;
  if (scratch->return_probe)
    scratch->trampoline = mm->uprobes_state.xol_area->vaddr;
}

/// Replaces the address of the trampoline, with which the current frame was entered, by the true
/// return address.  Returns 0 if the thread has none for this place on the stack.
__attribute__((noinline)) int leave_trampoline(struct Scratch* scratch) {
  if (!scratch)
    return 0;
  const struct return_instance* probe = (const struct return_instance*)scratch->return_probe;
  for (int i = 0; i < kMostReturnProbes && probe; ++i) {
    unsigned long stack = 0;
    unsigned long address = 0;
    const struct return_instance* next = 0;
    if (bpf_core_read(&stack, sizeof stack, &probe->stack) ||
        bpf_core_read(&address, sizeof address, &probe->orig_ret_vaddr) ||
        bpf_core_read(&next, sizeof next, &probe->next))
      return 0;
    if (stack + 8 == scratch->sp) {
      scratch->return_probe = (uint64_t)probe;
      scratch->ip = address;
      scratch->is_unique = 1;  // the stack's words do not have this address
      return address != scratch->trampoline;
    }
    probe = next;
  }
  return 0;
}
