// Finds the true return addresses of functions on which another tool has return probes.
//
// While such a function runs, the kernel has replaced its return address by that of a trampoline,
// in the mapping "[uprobes]".  The true address is in the thread's list of return instances,
// innermost first, together with the place on the stack (prepare_uretprobe() in
// kernel/events/uprobes.c, Linux 5.18 to 6.18).
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/memory.bpf.h"

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
