// Reads the frames of the current thread in CRuby, as walk.h does.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "languages/ruby/layout.h"

struct RubySearch {
  struct ScriptScratch* scratch;
  const struct RubyLayout* layout;
  uint64_t thread_pointer;
  uint64_t ractors, ractor;  ///< the list of ractors, and the next node
  uint64_t threads, state;   ///< the list of a ractor's threads, and the next; 0: none yet
  uint64_t context;          ///< is found if it is not 0
};

/// Returns the execution context of a thread's structure if it is the current thread's and has a VM
/// stack; otherwise 0.  One that has ended has lost its stack, but keeps what else is compared.
static __always_inline uint64_t ruby_context(const struct RubySearch* search, uint64_t state) {
  const struct RubyLayout* layout = search->layout;
  const uint64_t native =
      layout->native_thread ? user_word(search->scratch, state + layout->native_thread) : state;
  if (!native || user_word(search->scratch, native + layout->thread_id) != search->thread_pointer)
    return 0;
  const uint64_t context = user_word(search->scratch, state + layout->context);
  if (!context || user_word(search->scratch, context + layout->thread) != state)
    return 0;
  return user_word(search->scratch, context) ? context : 0;  // the stack is the first field
}

/// Examines the next thread, or starts with the next ractor.
static long search_ruby_thread(uint32_t i, struct RubySearch* search) {
  const struct RubyLayout* layout = search->layout;
  if (!search->state || search->state == search->threads) {
    if (!search->ractor || search->ractor == search->ractors)
      return 1;
    search->threads = search->ractor - layout->next_ractor + layout->threads;
    search->state = user_word(search->scratch, search->threads);
    search->ractor = user_word(search->scratch, search->ractor);
    return 0;
  }
  search->context = ruby_context(search, search->state);
  if (search->context)
    return 1;
  search->state = user_word(search->scratch, search->state);
  return 0;
}

/// Finds the execution context of the current thread; 0 if it has none.
static __always_inline uint64_t find_ruby_context(struct RubySearch* search, uint64_t runtime,
                                                  uint32_t tid) {
  enum { kMostThreads = 4096 };
  search->thread_pointer = bpf_get_current_task_btf()->thread.fsbase;
  const uint64_t* known = bpf_map_lookup_elem(&script_threads, &tid);
  const uint64_t context = known ? ruby_context(search, *known) : 0;
  if (context)
    return context;
  const uint64_t vm = user_word(search->scratch, runtime);
  if (!vm)
    return 0;
  search->ractors = vm + kRubyRactors;
  search->ractor = user_word(search->scratch, search->ractors);
  bpf_loop(kMostThreads, search_ruby_thread, search, 0);
  if (search->context)
    bpf_map_update_elem(&script_threads, &tid, &search->state, BPF_ANY);
  return search->context;
}

/// Reads the mark of a body: RubyCodeFields::mark() of walk.h.  Returns false if it
/// is unreadable.
static __always_inline bool read_ruby_mark(struct ScriptScratch* scratch,
                                           const struct RubyLayout* layout, uint64_t body) {
  if (body == scratch->last_code)
    return true;
  if (!read_user(scratch, scratch->code, kRubyBodyHead, body))
    return false;
  const uint32_t line =
      (uint32_t)code_word(scratch, kRubyLine) >> (layout->has_tagged_line ? 1 : 0);
  uint64_t sum = add_to_mark(0, code_word(scratch, kRubyLabel));
  sum = add_to_mark(sum, code_word(scratch, kRubyPath));
  sum = add_to_mark(sum, code_word(scratch, kRubyInstructions));
  scratch->last_mark = add_to_mark(sum, line) >> 32 << 32;
  scratch->last_code = body;
  return true;
}

/// Starts with the frames of an execution context.  Returns false if they are unreadable.
static __always_inline bool start_ruby_context(struct ScriptScratch* scratch, uint64_t context) {
  uint64_t stack[3];  // vm_stack, its size in words, and the innermost frame
  scratch->at = scratch->end = 0;
  if (!context || !read_user(scratch, stack, sizeof stack, context))
    return false;
  scratch->context = context;
  scratch->end = stack[0] + stack[1] * sizeof(uint64_t);
  scratch->at = stack[2] < stack[0] ? scratch->end : stack[2];
  return true;
}

/// Returns the execution context of the fiber that has resumed another one; 0 if there is none.
static __always_inline uint64_t resuming_ruby_context(struct ScriptScratch* scratch,
                                                      const struct RubyLayout* layout,
                                                      uint64_t context) {
  for (uint32_t more = 0; more <= kRubyMoreOfSetjmp; more += kRubyMoreOfSetjmp) {
    const uint64_t fiber = user_word(scratch, context + layout->previous + more);
    const uint64_t found = fiber + kRubyContext;
    if (fiber && user_word(scratch, found + layout->thread - kRubyFiberBeforeThread) == fiber &&
        user_word(scratch, found + layout->thread) == user_word(scratch, context + layout->thread))
      return found;
  }
  return 0;
}

static long take_ruby_frame(uint32_t i, struct ScriptWalk* walk) {
  const struct RubyLayout* layout = &walk->layout->ruby;
  struct ScriptScratch* scratch = walk->scratch;
  if (scratch->count >= kMaxScriptFrames)
    return 1;
  if (scratch->at >= scratch->end) {
    if (!start_ruby_context(scratch, resuming_ruby_context(scratch, layout, scratch->context)))
      return 1;
    add_script_frame(scratch, 0, 0, 0);
    return 0;
  }
  if (!read_user(scratch, scratch->frame, kRubyFrameHead, scratch->at)) {
    add_unreadable_frame(scratch);
    return 1;
  }
  scratch->at += layout->frame_bytes;
  const uint64_t sequence = frame_word(scratch, kRubySequence);
  const uint64_t environment = frame_word(scratch, kRubyEnvironment);
  if (!sequence || !environment)
    return 0;
  const uint64_t flags = user_word(scratch, environment);
  if ((flags & kRubyIsOfC) || (flags & kRubyKindMask) == kRubyDummy)
    return 0;
  const uint64_t end = flags & kRubyEndsCall ? PE_SCRIPT_ENDS_CALL : 0;
  const uint64_t body = flags ? user_word(scratch, sequence + kRubyBody) : 0;
  if (!body || !read_ruby_mark(scratch, layout, body))
    add_script_frame(scratch, PE_UNREADABLE_CODE | end, 0, 0);
  else
    add_script_frame(scratch, (body & ~PE_SCRIPT_ENDS_CALL) | end, scratch->last_mark,
                     frame_word(scratch, kRubyInstruction) - code_word(scratch, kRubyInstructions));
  return 0;
}

/// Adds the frames of the current thread in Ruby.
__attribute__((noinline)) int walk_ruby(const struct ProcessScript* script,
                                        struct ScriptScratch* scratch, uint32_t tid) {
  if (!script || !scratch)
    return 0;
  struct RubySearch search = {.scratch = scratch, .layout = &script->layout.ruby};
  const uint64_t context = find_ruby_context(&search, script->runtime, tid);
  if (!start_ruby_context(scratch, context))
    return 0;
  struct ScriptWalk walk = {.scratch = scratch, .layout = &script->layout};
  bpf_loop(2 * kMaxScriptFrames, take_ruby_frame, &walk, 0);
  scratch->is_cut = scratch->at < scratch->end;
  return 0;
}
