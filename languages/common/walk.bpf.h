// Walks the frames of the current thread in any interpreter, in the kernel.
//
// recording/bpf/scripts.bpf.h includes this after the walk's limits.  The walks of languages, which
// are included at the end, use what is declared here.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kMaxScripts);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, uint32_t);
  __type(value, struct ProcessScript);
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
uint32_t has_scripts = 0;  ///< user space has written one, or a file

/// Marks of functions that were sent before, mixed with their process's number, by their lowest
/// bits.  One may take another's place.
enum { kSeenMarks = 65536 };
uint32_t seen_marks[kSeenMarks];

/// Where a thread's structure was found last, by tid.  It is checked before it is used.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, uint32_t);
  __type(value, uint64_t);
} script_threads SEC(".maps");

/// Number of states of one Python thread, in different interpreters.
enum { kMostPythonStates = 4 };

struct ScriptScratch {
  struct SampleRecord record;
  /// Directly after the record: both are sent together.
  uint64_t words[2 * kMaxScriptFrames];
  struct Limits limits;
  uint32_t count;      ///< number of frames
  uint32_t is_cut;     ///< outer frames are missing
  uint64_t at;         ///< the next frame; 0: none
  uint64_t frame[16];  ///< the bytes of a frame
  uint64_t code[16];   ///< those of its code object
  uint64_t last_code;  ///< the last frame's, for recursion
  uint64_t last_mark;  ///< in the upper half
  uint32_t tgid;
  uint32_t has_new;  ///< functions whose names have not been read
  /// Python: the thread's states with frames, the newest interpreter's first.
  uint64_t states[kMostPythonStates];
  uint32_t state_count, next_state;
  uint64_t end;          ///< Ruby: where the outermost frame ends
  uint64_t context;      ///< Ruby: the execution context of these frames
  uint32_t is_at_end;    ///< Python: no frame belongs to the call of the loop that follows
  uint32_t is_internal;  ///< PHP: the last function is in C
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);  // the loader sets its size: one for each CPU
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct ScriptScratch);
} script_scratches SEC(".maps");

/// Reads the memory of the process; returns false if it is unreadable.  At a limit of the walk's
/// time nothing is readable any more, so that every loop ends.
static __always_inline bool read_user(struct ScriptScratch* scratch, void* into, uint32_t bytes,
                                      uint64_t avma) {
  if (!may_go_on(&scratch->limits))
    return false;
  if (!bpf_probe_read_user(into, bytes, (const void*)avma))
    return true;
  count_fault(&scratch->limits);
  return false;
}

/// Returns the word at `avma`; 0 if it is unreadable.
static __always_inline uint64_t user_word(struct ScriptScratch* scratch, uint64_t avma) {
  uint64_t word = 0;
  return read_user(scratch, &word, sizeof word, avma) ? word : 0;
}

struct ScriptWalk {
  struct ScriptScratch* scratch;
  const struct ScriptLayout* layout;
};

/// Returns the eight bytes at an offset of the frame, or of the code object, that was read.
static __always_inline uint64_t frame_word(const struct ScriptScratch* scratch, uint32_t offset) {
  return scratch->frame[offset >> 3 & 15];
}
static __always_inline uint64_t code_word(const struct ScriptScratch* scratch, uint32_t offset) {
  return scratch->code[offset >> 3 & 15];
}

/// Adds a field to the sum of which mark_of() (frame.h) is the upper half.
static __always_inline uint64_t add_to_mark(uint64_t sum, uint64_t field) {
  return (sum ^ field) * PE_MARK_FACTOR;
}

/// Adds a frame.  `code` may have PE_SCRIPT_ENDS_CALL; `mark` is in the upper half.  Returns false
/// if there is no room.
static __always_inline bool add_script_frame(struct ScriptScratch* scratch, uint64_t code,
                                             uint64_t mark, uint64_t place) {
  uint32_t count = scratch->count;
  KEEP(count);
  if (count >= kMaxScriptFrames)
    return false;
  scratch->words[2 * count] = code;
  scratch->words[2 * count + 1] = mark | (place > 0xffffffff ? 0xffffffff : place);
  scratch->count = count + 1;
  const uint32_t own_mark = mark >> 32 ^ scratch->tgid;
  uint32_t* const seen = &seen_marks[own_mark & (kSeenMarks - 1)];
  if (mark && *seen != own_mark) {
    *seen = own_mark;
    scratch->has_new = 1;
  }
  return true;
}

/// Adds a frame that is unreadable, unless that is because the walk has ended at a limit.
static __always_inline void add_unreadable_frame(struct ScriptScratch* scratch) {
  if (!scratch->limits.ended_by)
    add_script_frame(scratch, PE_UNREADABLE_CODE, 0, 0);
}

#include "languages/php/walk.bpf.h"
#include "languages/python/walk.bpf.h"
#include "languages/ruby/walk.bpf.h"

/// Adds the frames of the current thread.
static __always_inline void walk_interpreter(const struct ProcessScript* script,
                                             struct ScriptScratch* scratch, uint32_t tid) {
  switch (script->layout.language) {
#define PE_WALK(Name, name)            \
  case kScript##Name:                  \
    walk_##name(script, scratch, tid); \
    break;
    PE_FOR_EACH_INTERPRETER(PE_WALK)
#undef PE_WALK
  }
}
