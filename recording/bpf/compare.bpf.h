// Checks whether a stack's words are those that were noted when it was walked.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/numbers.bpf.h"

// Gives each different stack a number, and stores it: see records.h.

/// How often the hash may belong to other stacks, or another CPU may be first.
enum { kAttempts = 4 };

struct Blocks {
  struct Scratch* scratch;
  uint32_t first;
  uint32_t is_other;
};

/// Returns the words of the scratch that form its block `i`; 0 beyond the last.
static __always_inline uint64_t* words_of(struct Scratch* scratch, uint32_t i) {
  uint64_t word = (uint64_t)i * kBlockWords;
  if (word > kMaxFrames)
    return 0;
  KEEP(word);
  return &scratch->words[word];
}

static long compare_block(uint32_t i, struct Blocks* blocks) {
  const uint32_t number = blocks->first + i;
  const uint64_t* words = words_of(blocks->scratch, i);
  const struct StackBlock* block = block_of(number);
  if (!words || !block)
    return 1;
  uint64_t difference = 0;
#pragma unroll
  for (int k = 0; k < kBlockWords; ++k) {
    difference |= words[k] ^ block->words[k];
    KEEP(difference);  // no branch for each word, or the verifier follows 2^k paths
  }
  if (difference)
    blocks->is_other = 1;
  return difference != 0;
}

static long copy_block(uint32_t i, struct Blocks* blocks) {
  const uint32_t number = blocks->first + i;
  const uint64_t* words = words_of(blocks->scratch, i);
  struct StackBlock* block = block_of(number);
  if (!words || !block)
    return 1;
#pragma unroll
  for (int k = 0; k < kBlockWords; ++k)
    block->words[k] = words[k];
  return 0;
}

/// Copies the stack into new blocks; 0 if there is no room.
static __always_inline uint32_t keep_stack(struct Scratch* scratch, uint32_t block_count) {
  const uint32_t first = take_numbers(&next_stack, block_count, stack_room);
  if (!first)
    return 0;
  struct Blocks blocks = {.scratch = scratch, .first = first};
  bpf_loop(block_count, copy_block, &blocks, 0);
  return first;
}

/// Returns the number of the stack whose frames are in words[1]..., with their `count` and `hash`;
/// 0 if there is no room.
__attribute__((noinline)) int number_stack(struct Scratch* scratch) {
  if (!scratch)
    return 0;
  uint32_t count = scratch->count;
  KEEP(count);
  if (count > kMaxFrames)
    count = kMaxFrames;
  scratch->words[0] = count | (uint64_t)scratch->stop << kHeaderStopShift | scratch->header_bits |
                      (uint64_t)scratch->script_words << kHeaderScriptShift;
#pragma unroll
  for (int k = 1; k < kBlockWords; ++k)
    scratch->words[count + k] = 0;
  scratch->is_new = 0;
  if (!stack_room || scratch->is_whole)
    return 0;
  const uint32_t block_count = (count + kBlockWords) / kBlockWords;
  struct StackKey key = {.hash = scratch->hash + scratch->words[0]};
  uint32_t kept = 0;
#pragma unroll
  for (int i = 0; i < kAttempts; ++i) {
    const uint32_t* found = bpf_map_lookup_elem(&stack_numbers, &key);
    const bool is_known = found && is_current_stack(*found);
    if (is_known) {
      struct Blocks blocks = {.scratch = scratch, .first = *found};
      bpf_loop(block_count, compare_block, &blocks, 0);
      if (!blocks.is_other)
        return blocks.first;
      ++key.attempt;
      continue;
    }
    if (!kept)
      kept = keep_stack(scratch, block_count);
    if (!kept)
      return 0;
    if (!bpf_map_update_elem(&stack_numbers, &key, &kept, found ? BPF_ANY : BPF_NOEXIST)) {
      scratch->is_new = 1;
      return kept;
    }
  }
  return 0;
}

/// Returns the bits in which the window's word differs from a noted one.
static __always_inline uint64_t word_difference(const struct Scratch* scratch, uint32_t place,
                                                uint64_t value, uint64_t start) {
  const uint64_t word = scratch->window[place & (kWindowWords - 1)];
  // This is a multiplication.  The verifier would follow both values of a mask, 0 and -1, for each
  // word.
  uint64_t is_from_start = place >> kFromStartShift;
  KEEP(is_from_start);
  return (word - start * is_from_start) ^ value;
}

/// Whether the window still has the noted words of a stack that starts at `start`.  Of user
/// stacks, no pointers are noted less the start.  This is a global function,
/// because the verifier checks those once.  It does without bpf_loop(), whose calls took 60 ns for
/// a kernel stack.
__attribute__((noinline)) int words_stand(const struct Scratch* scratch,
                                          const struct NotedWords* noted, uint64_t start) {
  if (!scratch || !noted)
    return 0;
  const uint32_t steps = noted->steps;
  for (uint32_t step = 0; step < kHistoryWords / 8; ++step) {
    if (step == steps)
      return 1;
    uint64_t difference = 0;
#pragma unroll
    for (uint32_t k = 0; k < 8; ++k) {
      const uint32_t at = step * 8 + k;
      difference |= word_difference(scratch, noted->places[at], noted->values[at], start);
      KEEP(difference);  // as in compare_block()
    }
    if (difference)
      return 0;
  }
  return 1;
}

/// Stores the words that are noted in the scratch, one to kMaxHistoryWords.
static __always_inline void keep_words(const struct Scratch* scratch, struct NotedWords* noted) {
  uint32_t read = scratch->places_read;
  __builtin_memcpy(noted->places, scratch->places, sizeof noted->places);
  __builtin_memcpy(noted->values, scratch->values, sizeof noted->values);
  // The first word fills up the last step.
  const uint16_t place = scratch->places[0];
  const uint64_t value = scratch->values[0];
#pragma unroll
  for (int k = 0; k < 7; ++k) {
    uint32_t at = read + k;
    KEEP(at);
    at &= kHistoryWords - 1;
    noted->places[at] = place;
    noted->values[at] = value;
  }
  noted->span_bytes = (scratch->max_place + 1) * 8;
  noted->steps = (read + 7) / 8;
}
