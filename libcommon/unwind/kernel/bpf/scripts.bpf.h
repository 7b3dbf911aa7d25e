// Reads the stack of the current thread in its interpreter (layout.h, ScriptLayout).
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/kernel/bpf/maps.bpf.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kMaxScripts);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, uint32_t);
  __type(value, struct ScriptLayout);
} scripts SEC(".maps");

/// Programs with an interpreter.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kMaxScriptFiles);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct ScriptFileKey);
  __type(value, struct ScriptFile);
} script_files SEC(".maps");
uint32_t has_script_files = 0;

/// When the reader of the ring was last woken for names.
uint64_t script_wakeup_ns = 0;

/// Where a thread's state was found last, by tid.  It is checked before it is used.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, uint32_t);
  __type(value, uint64_t);
} script_threads SEC(".maps");

/// Number of states of one thread, in different interpreters.
enum { kMostStates = 4 };

struct ScriptScratch {
  struct SampleRecord record;
  /// Directly after the record: both are sent together.
  uint64_t words[2 * kMaxScriptFrames];
  uint64_t states[kMostStates];  ///< with frames, the newest interpreter's first
  uint32_t state_count, next_state;
  uint32_t count;      ///< number of frames
  uint32_t is_at_end;  ///< no frame belongs to the call of the loop that follows
  uint64_t at;         ///< the next frame
  uint64_t frame[16];  ///< the first kScriptFrameBytes are read
  uint64_t code[16];   ///< the first kScriptCodeBytes are read
  uint64_t last_code;  ///< the last frame's, for recursion
  uint64_t last_mark;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);  // the loader sets its size: one for each CPU
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct ScriptScratch);
} script_scratches SEC(".maps");

static __always_inline const struct ScriptFile* script_file(const struct file* file) {
  const struct inode* inode = BPF_CORE_READ(file, f_inode);
  const struct ScriptFileKey key = {.inode = BPF_CORE_READ(inode, i_ino),
                                    .device = BPF_CORE_READ(inode, i_sb, s_dev)};
  return bpf_map_lookup_elem(&script_files, &key);
}

/// Notes the interpreter of a process, which is that file's.
static __always_inline void note_script(uint32_t tgid, const struct ScriptFile* file,
                                        uint64_t bias) {
  struct ScriptLayout layout = file->layout;
  layout.runtime += bias;
  bpf_map_update_elem(&scripts, &tgid, &layout, BPF_NOEXIST);
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

/// Finds the interpreter of a process that user space does not know yet, if it is in the process's
/// program, or in the code that the current thread executes.  Null if there is none.
static __always_inline const struct ScriptLayout* find_script(struct task_struct* task) {
  if (!has_script_files)
    return 0;
  const uint32_t tgid = task->tgid;
  const struct ScriptFile* program = script_file(BPF_CORE_READ(task, mm, exe_file));
  if (program)
    note_script(tgid, program, BPF_CORE_READ(task, mm, start_code) - program->code_svma);
  else
    bpf_find_vma(task, ((const struct pt_regs*)bpf_task_pt_regs(task))->ip, note_library, 0, 0);
  return bpf_map_lookup_elem(&scripts, &tgid);
}

/// Returns the word at `avma`; 0 if it is unreadable.
static __always_inline uint64_t user_word(uint64_t avma) {
  uint64_t word = 0;
  return bpf_probe_read_user(&word, sizeof word, (const void*)avma) ? 0 : word;
}

/// Returns the innermost frame of a thread; 0 if it has none (runtimes/python_walk.h).
static __always_inline uint64_t innermost_frame(const struct ScriptLayout* layout, uint64_t state) {
  enum { kPreviousOfCFrame = 8 };
  const uint64_t found = user_word(state + layout->frame);
  if (!layout->has_c_frame || !found)
    return found;
  const uint64_t frame = user_word(found + layout->frame_of_c_frame);
  if (!frame || user_word(frame + layout->caller))
    return frame;
  const uint64_t previous = user_word(found + layout->frame_of_c_frame + kPreviousOfCFrame);
  const uint64_t outer = previous ? user_word(previous + layout->frame_of_c_frame) : 0;
  return outer ? outer : frame;
}

struct ThreadSearch {
  struct ScriptScratch* scratch;
  const struct ScriptLayout* layout;
  uint64_t thread_pointer;
  uint64_t interpreter, state;  ///< to be examined next
};

/// Examines the next thread, or starts with the next interpreter.
static long search_thread(uint32_t i, struct ThreadSearch* search) {
  const struct ScriptLayout* layout = search->layout;
  if (!search->state) {
    if (!search->interpreter)
      return 1;
    search->state = user_word(search->interpreter + layout->first_thread);
    search->interpreter = user_word(search->interpreter + layout->next_interpreter);
    return 0;
  }
  // A new thread's state at first has the number of the thread that made it, but no frame.
  uint32_t count = search->scratch->state_count;
  KEEP(count);
  if (user_word(search->state + layout->thread_id) == search->thread_pointer &&
      innermost_frame(layout, search->state)) {
    if (count >= kMostStates)
      return 1;
    search->scratch->states[count] = search->state;
    search->scratch->state_count = count + 1;
  }
  search->state = user_word(search->state + layout->next_thread);
  return 0;
}

/// Finds the states of the current thread in the interpreters.
static __always_inline void find_states(struct ThreadSearch* search, uint32_t tid) {
  enum { kMostThreads = 4096 };
  const struct ScriptLayout* layout = search->layout;
  search->thread_pointer = bpf_get_current_task_btf()->thread.fsbase;
  search->interpreter = user_word(layout->runtime + layout->first_interpreter);
  const uint64_t* known = bpf_map_lookup_elem(&script_threads, &tid);
  if (known && !user_word(search->interpreter + layout->next_interpreter) &&
      user_word(*known + layout->thread_id) == search->thread_pointer) {
    search->scratch->states[0] = *known;
    search->scratch->state_count = 1;
    return;
  }
  bpf_loop(kMostThreads, search_thread, search, 0);
  if (search->scratch->state_count)
    bpf_map_update_elem(&script_threads, &tid, &search->scratch->states[0], BPF_ANY);
}

struct ScriptWalk {
  struct ScriptScratch* scratch;
  const struct ScriptLayout* layout;
};

/// Goes on to the next interpreter's frames.  Returns false if there are none.
static __always_inline bool start_state(const struct ScriptWalk* walk) {
  struct ScriptScratch* scratch = walk->scratch;
  uint32_t next = scratch->next_state;
  KEEP(next);
  if (next >= kMostStates || next >= scratch->state_count)
    return false;
  scratch->at = innermost_frame(walk->layout, scratch->states[next]);
  scratch->next_state = next + 1;
  return scratch->at != 0;
}

static __always_inline uint64_t frame_word(const struct ScriptScratch* scratch, uint32_t offset) {
  return scratch->frame[offset >> 3 & 15];
}

static __always_inline uint64_t code_word(const struct ScriptScratch* scratch, uint32_t offset) {
  return scratch->code[offset >> 3 & 15];
}

/// Reads the mark of a code object, in the upper half of a word: code_mark() of
/// runtimes/python_walk.h.  Returns false if it is unreadable.
static __always_inline bool read_mark(struct ScriptScratch* scratch,
                                      const struct ScriptLayout* layout, uint64_t code) {
  const uint64_t odd = 0x9e3779b97f4a7c15;
  if (code == scratch->last_code)
    return true;
  if (bpf_probe_read_user(scratch->code, kScriptCodeBytes,
                          (const void*)(code + layout->code_start)))
    return false;
  const uint32_t line = code_word(scratch, layout->first_line) >> 8 * (layout->first_line & 4);
  const uint64_t text =
      (code_word(scratch, layout->name) * odd ^ code_word(scratch, layout->file)) * odd;
  scratch->last_mark =
      ((text ^ code_word(scratch, layout->line_table)) * odd ^ line) * odd >> 32 << 32;
  scratch->last_code = code;
  return true;
}

static long take_script_frame(uint32_t i, struct ScriptWalk* walk) {
  const struct ScriptLayout* layout = walk->layout;
  struct ScriptScratch* scratch = walk->scratch;
  uint32_t count = scratch->count;
  KEEP(count);
  if (count >= kMaxScriptFrames || (!scratch->at && !start_state(walk)))
    return 1;
  uint64_t code = kScriptUnreadable, place = 0;
  const bool is_read =
      !bpf_probe_read_user(scratch->frame, kScriptFrameBytes, (const void*)scratch->at);
  if (is_read) {
    const uint32_t mark =
        frame_word(scratch, layout->end_mark) >> 8 * (layout->end_mark & 7) & 0xff;
    const bool is_shim = !layout->has_end_flag && mark >= kScriptShimOwner;
    scratch->at = frame_word(scratch, layout->caller);
    if (is_shim && !scratch->is_at_end) {
      uint32_t last = count - 1;
      KEEP(last);
      if (last < kMaxScriptFrames)
        scratch->words[2 * last] |= PE_SCRIPT_ENDS_CALL;
      scratch->is_at_end = 1;
      return 0;
    }
    const bool is_end = is_shim || (layout->has_end_flag && mark);
    const uint64_t object = frame_word(scratch, layout->code) & ~(uint64_t)kScriptTagBits;
    if (is_shim) {
      code = 0;
    } else if (read_mark(scratch, layout, object)) {
      code = object & ~PE_SCRIPT_ENDS_CALL;
      const uint64_t bytes = frame_word(scratch, layout->instruction) - object;
      place = scratch->last_mark | (bytes > 0xffffffff ? 0xffffffff : bytes);
    }
    code |= is_end ? PE_SCRIPT_ENDS_CALL : 0;
    scratch->is_at_end = is_end;
  }
  scratch->words[2 * count] = code;
  scratch->words[2 * count + 1] = place;
  scratch->count = count + 1;
  return is_read ? 0 : 1;
}

/// Returns flags: wakes the reader of the ring soon, because names must be read while functions
/// exist.
static __always_inline uint64_t wakeup_for_names(uint64_t now_ns) {
  enum { kOftenNs = 10000000 };
  if (now_ns - script_wakeup_ns < kOftenNs)
    return BPF_RB_NO_WAKEUP;
  script_wakeup_ns = now_ns;
  return BPF_RB_FORCE_WAKEUP;
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
  own->state_count = own->next_state = own->count = 0;
  own->at = own->last_code = 0;
  own->is_at_end = 1;
  struct ThreadSearch search = {.scratch = own, .layout = layout};
  find_states(&search, tid);
  struct ScriptWalk walk = {.scratch = own, .layout = layout};
  bpf_loop(2 * kMaxScriptFrames, take_script_frame, &walk, 0);
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
  own->record.stop = own->at ? kStopTooDeep : kStopEndOfStack;
  return bpf_ringbuf_output(&ring, own, sizeof own->record + count * 16,
                            wakeup_for_names(own->record.time_ns));
}
