// Reads the stack of the current thread in its interpreter (layout.h, ScriptLayout), and sends it.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/kernel/bpf/maps.bpf.h"
#include "unwind/kernel/bpf/php.bpf.h"
#include "unwind/kernel/bpf/python.bpf.h"
#include "unwind/kernel/bpf/ruby.bpf.h"
#include "unwind/kernel/bpf/script_memory.bpf.h"

static __always_inline const struct ScriptFile* script_file(const struct file* file) {
  const struct inode* inode = BPF_CORE_READ(file, f_inode);
  const struct ScriptFileKey key = {.inode = BPF_CORE_READ(inode, i_ino),
                                    .device = BPF_CORE_READ(inode, i_sb, s_dev)};
  return bpf_map_lookup_elem(&script_files, &key);
}

/// Returns the process that has forked this one, if both still run the same program: its tgid; 0 if
/// there is none.  Each program has its stack elsewhere.
static __always_inline uint32_t parent_of(struct task_struct* task) {
  struct task_struct* const parent = BPF_CORE_READ(task, real_parent);
  const bool is_same =
      BPF_CORE_READ(task, mm, start_code) == BPF_CORE_READ(parent, mm, start_code) &&
      BPF_CORE_READ(task, mm, start_stack) == BPF_CORE_READ(parent, mm, start_stack);
  return is_same ? BPF_CORE_READ(parent, tgid) : 0;
}

/// Notes the interpreter of a process, which is that file's.
static __always_inline void note_script(struct task_struct* task, const struct ScriptFile* file,
                                        uint64_t bias) {
  const uint32_t tgid = task->tgid;
  struct ScriptLayout layout = file->layout;
  layout.runtime += bias;
  layout.parent = parent_of(task);
  bpf_map_update_elem(&scripts, &tgid, &layout, BPF_NOEXIST);
}

/// Notes the interpreter that a process has from the one that has forked it.  Returns false if that
/// one has none.
static __always_inline bool inherit_script(struct task_struct* task) {
  const uint32_t tgid = task->tgid, parent = BPF_CORE_READ(task, real_parent, tgid);
  const struct ScriptLayout* known = bpf_map_lookup_elem(&scripts, &parent);
  if (!known || parent_of(task) != parent)
    return false;
  struct ScriptLayout layout = *known;
  layout.parent = parent;
  bpf_map_update_elem(&scripts, &tgid, &layout, BPF_NOEXIST);
  return true;
}

/// Called for the mapping that a thread executes.
static long note_library(struct task_struct* task, struct vm_area_struct* mapping,
                         const void* unused) {
  enum { kPageShift = 12 };
  const struct ScriptFile* file = script_file(BPF_CORE_READ(mapping, vm_file));
  if (file)
    note_script(
        task, file,
        BPF_CORE_READ(mapping, vm_start) - ((BPF_CORE_READ(mapping, vm_pgoff) << kPageShift) +
                                            file->code_svma - file->code_offset));
  return 0;
}

/// Finds the interpreter of a process that user space does not know yet, if it is in the process's
/// program, in that of the process that has forked it, or in the code that the current thread
/// executes.  Null if there is none.
static __always_inline const struct ScriptLayout* find_script(struct task_struct* task) {
  if (!has_script_files)
    return 0;
  const uint32_t tgid = task->tgid;
  const struct ScriptFile* program = script_file(BPF_CORE_READ(task, mm, exe_file));
  if (program)
    note_script(task, program, BPF_CORE_READ(task, mm, start_code) - program->code_svma);
  else if (!inherit_script(task))
    bpf_find_vma(task, ((const struct pt_regs*)bpf_task_pt_regs(task))->ip, note_library, 0, 0);
  return bpf_map_lookup_elem(&scripts, &tgid);
}

/// Sends the stack of the current thread in its interpreter, if it has one, before its sample.
/// Returns a negative number if there was no room.
__attribute__((noinline)) int send_script(struct Scratch* scratch) {
  if (!scratch)
    return 0;
  const uint32_t tgid = scratch->record.tgid, tid = scratch->record.tid;
  const uint32_t cpu = bpf_get_smp_processor_id();
  const struct ScriptLayout* layout = bpf_map_lookup_elem(&scripts, &tgid);
  struct ScriptScratch* own = bpf_map_lookup_elem(&script_scratches, &cpu);
  if (!layout)
    layout = find_script(bpf_get_current_task_btf());
  if (!layout || !own)
    return 0;
  own->count = own->is_cut = own->has_new = 0;
  own->at = own->last_code = 0;
  own->tgid = tgid;
  switch (layout->language) {
    case kScriptPython:
      walk_python(layout, own, tid);
      break;
    case kScriptPhp:
      if (tid == tgid)
        walk_php(layout, own);
      break;
    case kScriptRuby:
      walk_ruby(layout, own, tid);
      break;
  }
  uint32_t count = own->count;
  KEEP(count);
  if (count == 0 || count > kMaxScriptFrames)
    return 0;
  own->record = scratch->record;
  own->record.kind = kRecordScript;
  own->record.length = 2 * count;
  own->record.kernel_frames = 0;
  own->record.kernel_stack = 0;
  own->record.ip = layout->runtime;
  own->record.cookie = layout->binary;
  own->record.period = layout->parent;
  own->record.stop = own->is_cut ? kStopTooDeep : kStopEndOfStack;
  // Names must be read while functions exist.
  return bpf_ringbuf_output(&ring, own, sizeof own->record + count * 16,
                            own->has_new ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}
