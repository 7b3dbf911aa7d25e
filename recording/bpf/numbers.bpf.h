// Numbers of stacks and of sums.  Recordings may go on for weeks, so these tables are renewed: see
// records.h.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/maps.bpf.h"

/// Whether the number is from the half of `next` that is in use.  If not, it may still be read, but
/// must not be handed on: its place is used again after the next renewal.
static __always_inline bool is_current(const uint64_t* next, uint32_t number, uint32_t room) {
  const uint32_t half = *(const volatile uint64_t*)next >> 32;
  return number - half < room;
}

/// Returns the first of `count` new numbers; 0 if there is no room.
static __always_inline uint32_t take_numbers(uint64_t* next, uint32_t count, uint32_t room) {
  if ((uint32_t) * (volatile uint64_t*)next + count > room)
    return 0;
  const uint64_t taken = __sync_fetch_and_add(next, count);
  if ((uint32_t)taken + count > room)
    return 0;
  return (uint32_t)(taken >> 32) + (uint32_t)taken;
}

static __always_inline struct StackBlock* block_of(uint32_t number) {
  const uint32_t place = number & (2 * stack_room - 1);
  return bpf_map_lookup_elem(&stacks, &place);
}

static __always_inline struct KeyedSum* sum_of(uint32_t number) {
  const uint32_t place = number & (2 * sum_room - 1);
  return bpf_map_lookup_elem(&sums, &place);
}

static __always_inline bool is_current_stack(uint32_t number) {
  return is_current(&next_stack, number, stack_room);
}

/// Returns the number if it is old; otherwise 0.
static __always_inline uint32_t if_old(uint32_t number) {
  return is_current_stack(number) ? 0 : number;
}

/// Collects the old numbers of a thread's state.  Returns whether there are any.
static __always_inline bool note_references(const struct ThreadState* thread,
                                            struct References* references) {
  uint32_t* numbers = references->numbers;
  numbers[0] = if_old(thread->key.user_stack);
  numbers[1] = if_old(thread->key.kernel_stack);
  numbers[2] = if_old(thread->waker);
#pragma unroll
  for (int i = 0; i < kHeldLocks; ++i)
    numbers[3 + i] = if_old(thread->held[i].user_stack);
#pragma unroll
  for (int i = 0; i < kMaxWakers; ++i) {
    const uint64_t stacks_of_waker = thread->waking.words[2 * i + 1];
    numbers[3 + kHeldLocks + 2 * i] = if_old(stacks_of_waker >> 32);
    numbers[4 + kHeldLocks + 2 * i] = if_old(stacks_of_waker);
  }
  uint32_t any = 0;
#pragma unroll
  for (int i = 0; i < kMaxReferences; ++i)
    any |= numbers[i];
  return any != 0;
}
