// Records the kernel's own stack.  Reuses one of the thread's last ones if its words are unchanged.
// Otherwise the kernel unwinds it, which takes about 2 us.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/compare.bpf.h"

/// The range of the kernel's text and of its modules: Documentation/arch/x86/x86_64/mm.rst.
#define KERNEL_TEXT_START 0xffffffff80000000ULL
#define KERNEL_TEXT_END 0xffffffffff000000ULL

/// Frames of the program itself, and of its callers: below the memory where the history starts.
enum { kOwnFrames = 4 };

static long hash_kernel_frame(uint32_t i, struct Blocks* of) {
  struct Scratch* scratch = of->scratch;
  uint32_t place = i + 1;
  KEEP(place);
  if (place >= kMaxFrames)
    return 1;
  const uint64_t hash = (scratch->hash ^ scratch->words[place]) * 0x9e3779b97f4a7c15ULL;
  scratch->hash = hash ^ hash >> 29;
  return 0;
}

/// Returns the number of the kernel's stack of that size, whose frames are in the scratch's words;
/// 0 if it has none, or if there is no room.
static __always_inline uint32_t number_kernel_stack(long bytes, struct Scratch* scratch,
                                                    struct Counts* counted) {
  scratch->count = 0;
  if (bytes <= 0)
    return 0;
  scratch->count = bytes / 8;
  scratch->hash = 1;
  scratch->stop = kStopEndOfStack;
  scratch->header_bits = kHeaderKernel;
  scratch->script_words = 0;
  struct Blocks of = {.scratch = scratch};
  bpf_loop(scratch->count, hash_kernel_frame, &of, 0);
  const uint32_t number = number_stack(scratch);
  if (!number)
    ++counted->stacks_full;
  return number;
}

/// Unwinds the kernel's stack anew.  Returns its number; 0 if there is none, or no room.
/// Overwrites the scratch, whose words then hold the frames.
static __always_inline uint32_t unwind_kernel_stack(void* context, struct Scratch* scratch,
                                                    struct Counts* counted) {
  return number_kernel_stack(bpf_get_stack(context, &scratch->words[1], kMaxKernelFrames * 8, 0),
                             scratch, counted);
}

/// Whether the word is the next of the frames, which are found in their order.  If so, counts it.
static __always_inline bool match_frame(struct Scratch* scratch, uint64_t word) {
  const uint32_t matched = scratch->matched;
  const uint32_t tries = matched < kOwnFrames ? kOwnFrames : 1;
#pragma unroll
  for (uint32_t k = 0; k < kOwnFrames; ++k) {
    uint32_t place = matched + k + 1;
    KEEP(place);
    if (k < tries && place <= kMaxKernelFrames && scratch->words[place] == word) {
      scratch->matched = matched + k + 1;
      return true;
    }
  }
  return false;
}

/// Finds where the frames are in the window.
static long search_frames(uint32_t i, struct Scratch** of) {
  struct Scratch* scratch = *of;
  KEEP(i);
  if (i >= kWindowWords)
    return 1;
  if (match_frame(scratch, scratch->window[i])) {
    scratch->last_but_one = scratch->last;
    scratch->last = i;
  }
  return 0;
}

/// The part of a kernel stack that is compared.
struct Choice {
  struct Scratch* scratch;
  uint64_t start;  ///< start of the window
  uint64_t bytes;  ///< number of bytes of the window
};

/// Notes the window's word `i` if the kernel's unwinder may have followed it.  The unwinder goes
/// from one instruction pointer, whose rule gives the place of its caller's, to the next.
/// Sometimes it follows a pointer into the stack.  Its result depends on no other words of the
/// stack.
static long choose_word(uint32_t i, struct Choice* choice) {
  struct Scratch* scratch = choice->scratch;
  KEEP(i);
  if (i >= kWindowWords)
    return 1;
  const uint64_t word = scratch->window[i];
  const uint64_t from_start = word - choice->start;
  const bool is_text = word >= KERNEL_TEXT_START && word < KERNEL_TEXT_END;
  const bool is_in_stack = from_start < choice->bytes;
  if (!is_text && !is_in_stack)
    return 0;
  const uint32_t read = scratch->places_read;
  scratch->places[read & (kHistoryWords - 1)] = i | (uint32_t)is_in_stack << kFromStartShift;
  scratch->values[read & (kHistoryWords - 1)] = is_in_stack ? from_start : word;
  scratch->max_place = i;
  scratch->places_read = read + 1;
  return read + 1 > kMaxHistoryWords;
}

/// Fills the window with `bytes` of the stack from `start` on.
static __always_inline bool read_kernel_window(struct Scratch* scratch, uint64_t start,
                                               uint64_t bytes) {
  if (bytes == 0)
    return false;
  KEEP(bytes);
  return bytes <= sizeof scratch->window &&
         !bpf_probe_read_kernel(scratch->window, bytes, (const void*)start);
}

/// Returns the thread's history of the stack; null if it has none.
static __always_inline struct KernelHistory* kernel_history_of(struct ThreadStacks* last,
                                                               uint32_t stack) {
#pragma unroll
  for (int i = 0; i < kKernelHistories; ++i)
    if (last->kernel_histories[i].stack == stack)
      return &last->kernel_histories[i];
  return 0;
}

/// The input of sift_word(), for a stack that occurs again with other words.
struct Sieve {
  struct Scratch* scratch;
  const struct NotedWords* noted;
  uint64_t start;
};

static long sift_word(uint32_t i, struct Sieve* sieve) {
  struct Scratch* scratch = sieve->scratch;
  KEEP(i);
  if (i >= kHistoryWords)
    return 1;
  const uint32_t place = sieve->noted->places[i];
  const uint64_t value = sieve->noted->values[i];
  if (word_difference(scratch, place, value, sieve->start))
    return 0;
  const uint32_t read = scratch->places_read;
  scratch->places[read & (kHistoryWords - 1)] = place;
  scratch->values[read & (kHistoryWords - 1)] = value;
  const uint32_t in_window = place & (kWindowWords - 1);  // not sorted: see keep_words()
  if (in_window > scratch->max_place)
    scratch->max_place = in_window;
  scratch->places_read = read + 1;
  match_frame(scratch, value);
  return 0;
}

/// Remembers the stack that was unwound and has this number.
///
/// The kernel may put a random gap into the frame of each system call's outermost function
/// (randomize_kstack_offset).  The words below the gap then keep their distances from `start`.  The
/// last frame, which is the entry's, keeps its distance from `end`.  A gap is detected when the
/// same stack occurs again with another size.
///
/// A word that has changed although the stack is the same was not followed.  It may be an old value
/// in a variable that was not written yet.  It is not compared any more.  If no word is left for
/// some frame, the frames are not always at the same distances, and the stack is forgotten.
static __always_inline void remember_kernel_stack(struct Scratch* scratch,
                                                  struct ThreadStacks* last, uint32_t number) {
  const uint64_t start = *(volatile uint64_t*)&scratch->start_sp;
  const uint64_t bytes = *(volatile uint64_t*)&scratch->registers_at - start;
  const uint32_t frames = scratch->count;
  if (frames >= kMaxKernelFrames || !read_kernel_window(scratch, start, bytes))
    return;
  scratch->matched = scratch->last_but_one = scratch->last = 0;
  bpf_loop(bytes / 8, search_frames, &scratch, 0);
  // A frame that is nowhere in the window is a tracer's.  The tracer has replaced a return address,
  // and keeps that elsewhere (kernel/trace/fgraph.c).
  if (scratch->matched != frames)
    return;
  struct KernelHistory* history = kernel_history_of(last, number);
  const bool has_gap = history && (history->has_gap || history->bytes != bytes);
  scratch->places_read = 0;
  scratch->max_place = 0;
  if (history && history->has_gap == has_gap) {
    struct Sieve sieve = {.scratch = scratch, .noted = &history->noted, .start = start};
    scratch->matched = 0;
    bpf_loop(history->noted.steps * 8, sift_word, &sieve, 0);
    if (scratch->matched < frames - has_gap)
      scratch->places_read = 0;
  } else {
    struct Choice choice = {.scratch = scratch,
                            .start = start,
                            .bytes = has_gap ? (scratch->last_but_one + 1) * 8 : bytes};
    bpf_loop(choice.bytes / 8, choose_word, &choice, 0);
  }
  if (history)
    history->stack = 0;
  if (scratch->places_read == 0 || scratch->places_read > kMaxHistoryWords)
    return;
  if (!history)
    history = &last->kernel_histories[last->next_kernel_history++ & (kKernelHistories - 1)];
  keep_words(scratch, &history->noted);
  history->stack = number;
  history->has_gap = has_gap;
  history->bytes = bytes;
  history->last_from_end = bytes - scratch->last * 8;
  history->last = scratch->window[scratch->last & (kWindowWords - 1)];
}

/// Whether the last frame is where it was.
static __always_inline bool ends_alike(const struct KernelHistory* history, uint64_t end) {
  uint64_t word = 0;
  return !bpf_probe_read_kernel(&word, sizeof word, (const void*)(end - history->last_from_end)) &&
         word == history->last;
}

/// Returns the thread's kernel stack if it is one of its last ones; 0 if it is not.
static __always_inline uint32_t find_kernel_stack_again(struct Scratch* scratch,
                                                        const struct ThreadStacks* last) {
  const uint64_t start = *(volatile uint64_t*)&scratch->start_sp;
  const uint64_t end = *(volatile uint64_t*)&scratch->registers_at;
  uint64_t read = 0;
#pragma unroll
  for (int i = 0; i < kKernelHistories; ++i) {
    const struct KernelHistory* history = &last->kernel_histories[i];
    const uint64_t bytes = history->noted.span_bytes;
    if (history->stack == 0 || !is_current_stack(history->stack) || bytes > end - start ||
        (history->has_gap ? !ends_alike(history, end) : history->bytes != end - start))
      continue;
    if (read < bytes && !read_kernel_window(scratch, start, bytes))
      continue;
    if (read < bytes)
      read = bytes;
    if (words_stand(scratch, &history->noted, start))
      return history->stack;
  }
  return 0;
}

/// Records the kernel's stack of a task that is about to leave its CPU.  Returns its number; 0 if
/// there is none, or no room.  `context` is the tracepoint's arguments, which are in that stack.
/// If the stack's words from these on are the same, the way to the task's registers is the same.
/// Overwrites the scratch.
static __always_inline uint32_t take_kernel_stack(void* context, struct Scratch* scratch,
                                                  struct ThreadStacks* last,
                                                  struct Counts* counted) {
  // These are read back from the scratch, because the verifier allows no arithmetic with pointers.
  scratch->start_sp = (uint64_t)context;
  scratch->registers_at = (uint64_t)bpf_task_pt_regs(bpf_get_current_task_btf());
  uint32_t reusable = 0;
  if (last)
    reusable = find_kernel_stack_again(scratch, last);
  if (reusable) {
    ++counted->kernel_reused;
    if (!check_reuse)
      return reusable;
  }
  const uint32_t number = unwind_kernel_stack(context, scratch, counted);
  ++counted->kernel_unwound;
  if (reusable && number != reusable)
    ++counted->wrong_reuse;
  if (last && number && !reusable)
    remember_kernel_stack(scratch, last, number);
  return number;
}

/// Reads the frames of the kernel's stack, to be sent with the sample.  Returns their number.
static __always_inline uint32_t read_kernel_stack(void* context, struct Scratch* scratch) {
  const long bytes =
      bpf_get_stack(context, scratch->kernel_frames, sizeof scratch->kernel_frames, 0);
  return bytes > 0 ? (uint32_t)bytes / 8 : 0;
}
