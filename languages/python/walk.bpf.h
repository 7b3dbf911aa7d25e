// Reads the frames of the current thread in CPython, as walk.h does.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "languages/python/layout.h"

/// Returns the innermost frame of a thread; 0 if it has none (walk.h).
static __always_inline uint64_t innermost_frame(struct ScriptScratch* scratch,
                                                const struct PythonLayout* layout, uint64_t state) {
  const uint64_t found = user_word(scratch, state + layout->frame);
  if (!layout->has_c_frame || !found)
    return found;
  const uint64_t frame = user_word(scratch, found + layout->frame_of_c_frame);
  if (!frame || user_word(scratch, frame + layout->caller))
    return frame;
  const uint64_t previous =
      user_word(scratch, found + layout->frame_of_c_frame + kPythonPreviousOfCFrame);
  const uint64_t outer = previous ? user_word(scratch, previous + layout->frame_of_c_frame) : 0;
  return outer ? outer : frame;
}

struct ThreadSearch {
  struct ScriptScratch* scratch;
  const struct PythonLayout* layout;
  uint64_t thread_pointer;
  uint64_t interpreter, state;  ///< to be examined next
};

/// Examines the next thread, or starts with the next interpreter.
static long search_thread(uint32_t i, struct ThreadSearch* search) {
  const struct PythonLayout* layout = search->layout;
  if (!search->state) {
    if (!search->interpreter)
      return 1;
    search->state = user_word(search->scratch, search->interpreter + layout->first_thread);
    search->interpreter =
        user_word(search->scratch, search->interpreter + layout->next_interpreter);
    return 0;
  }
  // A new thread's state at first has the number of the thread that made it, but no frame.
  uint32_t count = search->scratch->state_count;
  KEEP(count);
  if (user_word(search->scratch, search->state + layout->thread_id) == search->thread_pointer &&
      innermost_frame(search->scratch, layout, search->state)) {
    if (count >= kMostPythonStates)
      return 1;
    search->scratch->states[count] = search->state;
    search->scratch->state_count = count + 1;
  }
  search->state = user_word(search->scratch, search->state + layout->next_thread);
  return 0;
}

/// Finds the states of the current thread in the interpreters.
static __always_inline void find_states(struct ThreadSearch* search, uint64_t runtime,
                                        uint32_t tid) {
  enum { kMostThreads = 16384 };
  const struct PythonLayout* layout = search->layout;
  search->thread_pointer = bpf_get_current_task_btf()->thread.fsbase;
  search->interpreter = user_word(search->scratch, runtime + layout->first_interpreter);
  const uint64_t* known = bpf_map_lookup_elem(&script_threads, &tid);
  if (known && !user_word(search->scratch, search->interpreter + layout->next_interpreter) &&
      user_word(search->scratch, *known + layout->thread_id) == search->thread_pointer) {
    search->scratch->states[0] = *known;
    search->scratch->state_count = 1;
    return;
  }
  bpf_loop(kMostThreads, search_thread, search, 0);
  if (search->scratch->state_count) {
    const uint64_t found = search->scratch->states[0];  // as in number_sum()
    bpf_map_update_elem(&script_threads, &tid, &found, BPF_ANY);
  }
}

/// Goes on to the next interpreter's frames.  Returns false if there are none.
static __always_inline bool start_state(const struct ScriptWalk* walk) {
  struct ScriptScratch* scratch = walk->scratch;
  uint32_t next = scratch->next_state;
  KEEP(next);
  if (next >= kMostPythonStates || next >= scratch->state_count)
    return false;
  scratch->at = innermost_frame(scratch, &walk->layout->python, scratch->states[next]);
  scratch->next_state = next + 1;
  return scratch->at != 0;
}

/// Reads the mark of a code object: code_mark() of walk.h.  Returns false if it is
/// unreadable.
static __always_inline bool read_python_mark(struct ScriptScratch* scratch,
                                             const struct PythonLayout* layout, uint64_t code) {
  if (code == scratch->last_code)
    return true;
  if (!read_user(scratch, scratch->code, kPythonMarkedBytes, code + layout->marked_start))
    return false;
  const uint32_t start = layout->marked_start;
  const uint64_t short_name = code_word(scratch, layout->name - kPythonWordBytes - start);
  const uint32_t line =
      code_word(scratch, layout->first_line - start) >> 8 * (layout->first_line & 4);
  uint64_t sum = add_to_mark(0, code_word(scratch, layout->name - start));
  sum = add_to_mark(sum, code_word(scratch, layout->file - start));
  sum = add_to_mark(sum, code_word(scratch, layout->line_table - start));
  sum = add_to_mark(sum, user_word(scratch, short_name + layout->text_length + kPythonWordBytes));
  scratch->last_mark = add_to_mark(sum, line) >> 32 << 32;
  scratch->last_code = code;
  return true;
}

/// Marks the last frame as the end of a call.
static __always_inline void end_python_call(struct ScriptScratch* scratch) {
  uint32_t last = scratch->count - 1;
  KEEP(last);
  if (last < kMaxScriptFrames)
    scratch->words[2 * last] |= PE_SCRIPT_ENDS_CALL;
  scratch->is_at_end = 1;
}

static long take_python_frame(uint32_t i, struct ScriptWalk* walk) {
  const struct PythonLayout* layout = &walk->layout->python;
  struct ScriptScratch* scratch = walk->scratch;
  if (scratch->count >= kMaxScriptFrames || (!scratch->at && !start_state(walk)))
    return 1;
  if (!read_user(scratch, scratch->frame, kPythonFrameBytes, scratch->at)) {
    add_unreadable_frame(scratch);
    return 1;
  }
  const uint32_t mark = frame_word(scratch, layout->end_mark) >> 8 * (layout->end_mark & 7) & 0xff;
  const bool is_shim = !layout->has_end_flag && mark >= kPythonLeastShimOwner;
  scratch->at = frame_word(scratch, layout->caller);
  if (is_shim && layout->has_base_frame && !scratch->at)
    return 0;
  if (is_shim && !scratch->is_at_end) {
    end_python_call(scratch);
    return 0;
  }
  const bool is_end = is_shim || (layout->has_end_flag && mark);
  const uint64_t object = frame_word(scratch, layout->code) & ~(uint64_t)kPythonTagBits;
  const uint64_t end = is_end ? PE_SCRIPT_ENDS_CALL : 0;
  scratch->is_at_end = is_end;
  if (is_shim)
    add_script_frame(scratch, end, 0, 0);
  else if (!read_python_mark(scratch, layout, object))
    add_script_frame(scratch, PE_UNREADABLE_CODE | end, 0, 0);
  else
    add_script_frame(scratch, (object & ~PE_SCRIPT_ENDS_CALL) | end, scratch->last_mark,
                     frame_word(scratch, layout->instruction) - object);
  return 0;
}

/// Adds the frames of the current thread in Python.
__attribute__((noinline)) int walk_python(const struct ProcessScript* script,
                                          struct ScriptScratch* scratch, uint32_t tid) {
  if (!script || !scratch)
    return 0;
  scratch->state_count = scratch->next_state = 0;
  scratch->is_at_end = 1;
  struct ThreadSearch search = {.scratch = scratch, .layout = &script->layout.python};
  find_states(&search, script->runtime, tid);
  struct ScriptWalk walk = {.scratch = scratch, .layout = &script->layout};
  bpf_loop(2 * kMaxScriptFrames, take_python_frame, &walk, 0);
  scratch->is_cut = scratch->at != 0;
  return 0;
}
