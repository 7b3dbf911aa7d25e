// Checks whether a stack's words are those that were noted when it was walked.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/maps.bpf.h"

struct Comparison {
  const struct Scratch* scratch;
  const struct NotedWords* noted;
  uint64_t start;  ///< see NotedWords::places
  uint32_t is_other;
};

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

static long compare_words(uint32_t i, struct Comparison* comparison) {
  uint32_t first = i * 8;
  KEEP(first);
  first &= kHistoryWords - 8;
  const struct NotedWords* noted = comparison->noted;
  const uint64_t start = comparison->start;
  uint64_t difference = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    difference |= word_difference(comparison->scratch, noted->places[first + k],
                                  noted->values[first + k], start);
    KEEP(difference);  // as in compare_block()
  }
  if (difference)
    comparison->is_other = 1;
  return difference != 0;
}

/// Whether the window still has the noted words of a kernel stack, which starts at `start`.
static __always_inline bool words_stand(const struct Scratch* scratch,
                                        const struct NotedWords* noted, uint64_t start) {
  struct Comparison comparison = {.scratch = scratch, .noted = noted, .start = start};
  bpf_loop(noted->steps, compare_words, &comparison, 0);
  return !comparison.is_other;
}

/// Whether the window, which starts where the noted words do, still has them.  This is a global
/// function, because the verifier checks those once.
__attribute__((noinline)) int user_words_stand(const struct Scratch* scratch,
                                               const struct NotedWords* noted) {
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
      difference |= scratch->window[noted->places[at] & (kWindowWords - 1)] ^ noted->values[at];
      KEEP(difference);
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
