// Reads the user's stack, a window of it at once.  Notes every word that a walk reads, so that the
// same stack can be identified later.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/limits.bpf.h"

/// Values of Scratch::fp_at that are not addresses.
enum { kInFp, kInStartRegister };

/// Reads the word at `avma` into read_value, and the words around it into the window.  This is a
/// global function, because the verifier checks those once, not on each path that leads to them.
__attribute__((noinline)) int read_anew(struct Scratch* scratch, uint64_t avma) {
  if (!scratch)
    return -1;
  scratch->window_bytes = 0;
  if (!(avma & 7)) {
    // Frame pointers may be saved a little below the return address.
    const uint64_t below = avma - 64;
    const uint64_t bottom = scratch->sp & ~7ULL;
    const uint64_t start = below < bottom || below > avma ? bottom : below;
    uint32_t bytes = scratch->next_window_bytes;
    KEEP(bytes);
    if (bytes > sizeof scratch->window)
      bytes = sizeof scratch->window;
    scratch->next_window_bytes = sizeof scratch->window;
    long error = bpf_probe_read_user(scratch->window, bytes, (const void*)start);
    if (error) {  // perhaps the stack's end: read to the end of the page
      bytes = 4096 - (start & 4095);
      KEEP(bytes);
      if (bytes > sizeof scratch->window)
        bytes = sizeof scratch->window;
      error = bpf_probe_read_user(scratch->window, bytes, (const void*)start);
    }
    const uint64_t distance = avma - start;
    if (!error && distance < (bytes & ~7U)) {
      scratch->window_start = start;
      scratch->window_bytes = bytes & ~7U;
      scratch->read_value = scratch->window[distance >> 3 & (kWindowWords - 1)];
      return 0;
    }
  }
  if (!bpf_probe_read_user(&scratch->read_value, 8, (const void*)avma))
    return 0;
  count_fault(&scratch->limits);
  return -1;
}

/// Reads the word at `avma`; false if it is unreadable.
static __always_inline bool read_word(struct Scratch* scratch, uint64_t avma, uint64_t* word) {
  const uint64_t distance = avma - scratch->window_start;
  if (distance < scratch->window_bytes && !(distance & 7)) {
    *word = scratch->window[distance >> 3 & (kWindowWords - 1)];
  } else {
    if (read_anew(scratch, avma))
      return false;
    *word = scratch->read_value;
  }
  const uint32_t read = scratch->places_read;
  const uint64_t from_start = avma - scratch->start_sp;
  const uint64_t place = from_start >> 3;
  if (from_start & 7)
    scratch->is_unique = 1;
  scratch->places[read & (kHistoryWords - 1)] = place;
  scratch->values[read & (kHistoryWords - 1)] = *word;
  if (place > scratch->max_place)
    scratch->max_place = place;
  scratch->places_read = read + 1;
  return true;
}

/// Makes fp the frame pointer of the current frame.  It is read only if a rule needs it.  Callers
/// keep counters in that register, and a changed word makes a stack a different one.
static __always_inline bool need_fp(struct Scratch* scratch) {
  const uint64_t avma = scratch->fp_at;
  scratch->fp_at = kInFp;
  if (avma == kInFp)
    return true;
  if (avma == kInStartRegister) {
    scratch->uses_fp = 1;
    return true;
  }
  uint64_t word;
  if (!read_word(scratch, avma, &word))
    return false;
  scratch->fp = word;
  return true;
}
