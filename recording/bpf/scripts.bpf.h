// Reads the stack of the current thread in its interpreter (layout.h, ProcessScript), and sends it.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/limits.bpf.h"
// The walks of languages use what the walker declares.
#include "languages/common/walk.bpf.h"

static __always_inline const struct ScriptFile* script_file(const struct file* file) {
  const struct inode* inode = BPF_CORE_READ(file, f_inode);
  const struct ScriptFileKey key = {.inode = BPF_CORE_READ(inode, i_ino),
                                    .device = BPF_CORE_READ(inode, i_sb, s_dev)};
  return bpf_map_lookup_elem(&script_files, &key);
}

/// Notes the interpreter of a process, which is that file's.
static __always_inline void note_script(uint32_t tgid, const struct ScriptFile* file,
                                        uint64_t bias) {
  struct ProcessScript script = file->script;
  script.runtime += bias;
  bpf_map_update_elem(&scripts, &tgid, &script, BPF_NOEXIST);
}

/// Called for the mapping that a thread executes.
static long note_library(struct task_struct* task, struct vm_area_struct* mapping,
                         const void* unused) {
  enum { kPageShift = 12 };
  const struct ScriptFile* file = script_file(BPF_CORE_READ(mapping, vm_file));
  if (file)
    note_script(
        task->tgid, file,
        BPF_CORE_READ(mapping, vm_start) - ((BPF_CORE_READ(mapping, vm_pgoff) << kPageShift) +
                                            file->code_svma - file->code_offset));
  return 0;
}

/// A forked process has its parent's interpreter.
static __always_inline void fork_script(uint32_t parent, uint32_t child) {
  const struct ProcessScript* known = bpf_map_lookup_elem(&scripts, &parent);
  if (!known)
    return;
  struct ProcessScript script = *known;
  script.parent = parent;
  bpf_map_update_elem(&scripts, &child, &script, BPF_NOEXIST);
}

/// Finds the interpreter in the process's program.  Returns false if it has none that is known.
static __always_inline bool find_program_script(struct task_struct* task) {
  if (!has_script_files)
    return false;
  const struct ScriptFile* program = script_file(BPF_CORE_READ(task, mm, exe_file));
  if (program)
    note_script(task->tgid, program, BPF_CORE_READ(task, mm, start_code) - program->code_svma);
  return program;
}

/// Finds the interpreter of the current process, which user space does not know yet, if it is in
/// the process's program, or in the code that the current thread executes.  This is a global
/// function: up to Linux 6.1 at least, a program and all functions in progress share 512 bytes of
/// stack.
__attribute__((noinline)) int find_script(void) {
  if (!has_script_files)
    return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  if (!find_program_script(task))
    bpf_find_vma(task, ((const struct pt_regs*)bpf_task_pt_regs(task))->ip, note_library, 0, 0);
  return 0;
}

/// Reads the stack of the current thread in its interpreter.  Returns the number of frames.
static __always_inline uint32_t read_script(const struct ProcessScript* script,
                                            struct ScriptScratch* own, uint32_t tgid,
                                            uint32_t tid) {
  start_limits(&own->limits, kMostScriptNs);
  own->count = own->is_cut = own->has_new = 0;
  own->at = own->last_code = 0;
  own->tgid = tgid;
  walk_interpreter(script, own, tid);
  finish_limits(&own->limits);
  if (own->limits.ended_by)
    own->is_cut = 1;
  uint32_t count = own->count;
  KEEP(count);
  return count > kMaxScriptFrames ? 0 : count;
}

/// Sends the stack of the current thread in its interpreter, if it has one, before its sample.
/// Returns a negative number if there was no room.
__attribute__((noinline)) int send_script(struct Scratch* scratch) {
  if (!scratch)
    return 0;
  const uint32_t tgid = scratch->record.tgid;
  const uint32_t cpu = bpf_get_smp_processor_id();
  const struct ProcessScript* script = bpf_map_lookup_elem(&scripts, &tgid);
  struct ScriptScratch* own = bpf_map_lookup_elem(&script_scratches, &cpu);
  if (!script) {
    find_script();
    script = bpf_map_lookup_elem(&scripts, &tgid);
  }
  if (!script || !own)
    return 0;
  const uint32_t count = read_script(script, own, tgid, scratch->record.tid);
  if (count == 0)
    return 0;
  own->record = scratch->record;
  own->record.kind = kRecordScript;
  own->record.length = 2 * count;
  own->record.kernel_frames = 0;
  own->record.kernel_stack = 0;
  own->record.ip = script->runtime;
  own->record.cookie = script->binary;
  own->record.period = script->parent;
  own->record.stop = own->is_cut ? kStopTooDeep : kStopEndOfStack;
  uint32_t bytes = sizeof own->record + count * 16;
  KEEP(bytes);
  if (bytes > sizeof own->record + sizeof own->words)
    return 0;
  // Names must be read while functions exist.
  return bpf_ringbuf_output(&ring, own, bytes,
                            own->has_new ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

struct Appending {
  struct Scratch* to;
  struct ScriptScratch* from;
};

static long append_script_frame(uint32_t i, struct Appending* appending) {
  struct Scratch* to = appending->to;
  uint32_t at = to->count + 1;
  KEEP(at);
  if (i >= kMaxScriptFrames || at > kMaxFrames - 2) {
    to->header_bits |= kHeaderScriptCut;
    return 1;
  }
  const uint64_t code = appending->from->words[2 * i];
  const uint64_t place = appending->from->words[2 * i + 1];
  to->words[at] = code;
  to->words[at + 1] = place;
  to->count = at + 1;
  to->script_words += 2;
  to->hash = add_to_mark(add_to_mark(to->hash, code), place);
  return 0;
}

/// Appends the stack of the current thread in its interpreter, if it has one, to its stack.  The
/// last word is the process: each process has its own functions.
__attribute__((noinline)) int append_script(struct Scratch* scratch) {
  if (!scratch)
    return 0;
  const struct task_struct* task = bpf_get_current_task_btf();
  const uint32_t tgid = task->tgid, cpu = bpf_get_smp_processor_id();
  const struct ProcessScript* script = bpf_map_lookup_elem(&scripts, &tgid);
  struct ScriptScratch* own = bpf_map_lookup_elem(&script_scratches, &cpu);
  if (!script || !own)
    return 0;
  const uint32_t count = read_script(script, own, tgid, task->pid);
  if (own->is_cut)
    scratch->header_bits |= kHeaderScriptCut;
  struct Appending appending = {.to = scratch, .from = own};
  bpf_loop(count, append_script_frame, &appending, 0);
  uint32_t at = scratch->count + 1;
  KEEP(at);
  if (!scratch->script_words || at > kMaxFrames)
    return 0;
  scratch->words[at] = tgid;
  scratch->count = at;
  scratch->script_words += 1;
  scratch->hash = add_to_mark(scratch->hash, tgid);
  return 0;
}

/// Tells user space of a stack with frames of an interpreter that has a new number: names must be
/// read while functions exist.
__attribute__((noinline)) int announce_script(uint32_t number) {
  const struct task_struct* task = bpf_get_current_task_btf();
  const uint32_t tgid = task->tgid;
  const struct ProcessScript* script = bpf_map_lookup_elem(&scripts, &tgid);
  if (!script)
    return 0;
  const struct SampleRecord record = {.kind = kRecordScript,
                                      .time_ns = bpf_ktime_get_ns(),
                                      .tgid = tgid,
                                      .tid = task->pid,
                                      .user_stack = number,
                                      .ip = script->runtime,
                                      .period = script->parent,
                                      .cookie = script->binary};
  return bpf_ringbuf_output(&ring, (void*)&record, sizeof record, BPF_RB_FORCE_WAKEUP);
}
