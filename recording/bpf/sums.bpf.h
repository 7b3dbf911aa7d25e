// Adds up waits, by thread, stack and more, and reports those that user space must add up.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/samples.bpf.h"

/// Returns the number of the sum that has this key; 0 if there is no room.
__attribute__((noinline)) uint32_t number_sum(const struct SumKey* of) {
  if (!of)
    return 0;
  const struct SumKey key = *of;  // before Linux 6.8, an argument in memory is no key
  const uint32_t* known = bpf_map_lookup_elem(&sum_numbers, &key);
  if (known && is_current(&next_sum, *known, sum_room))
    return *known;
  const uint32_t number = take_numbers(&next_sum, 1, sum_room);
  struct KeyedSum* keyed = number ? sum_of(number) : 0;
  if (!keyed || bpf_map_update_elem(&sum_numbers, &key, &number, BPF_ANY))
    return 0;
  keyed->key = key;
  return number;
}

static __always_inline bool is_same_key(const struct SumKey* a, const struct SumKey* b) {
  const uint64_t* x = (const void*)a;
  const uint64_t* y = (const void*)b;
  return x[0] == y[0] && x[1] == y[1] && x[2] == y[2] && x[3] == y[3];
}

/// Adds to a sum of the thread.  Only one of its waits ends at a time.
static __always_inline void add(struct ThreadState* thread, const struct SumKey* key,
                                const struct Sum* more) {
  const uint32_t hash =
      key->user_stack + key->kernel_stack + key->waker + key->state + (uint32_t)(key->lock >> 3);
  uint32_t* number = &thread->sums[hash & (kThreadSums - 1)];
  struct KeyedSum* keyed = is_current(&next_sum, *number, sum_room) ? sum_of(*number) : 0;
  if (!keyed || !is_same_key(&keyed->key, key)) {
    const uint32_t found = number_sum(key);
    keyed = found ? sum_of(found) : 0;
    if (keyed)
      *number = found;
  }
  if (keyed) {
    keyed->sum.ns += more->ns;
    keyed->sum.last_ns = more->last_ns;
    if (with_times) {
      keyed->sum.ready_ns += more->ready_ns;
      keyed->sum.silent_ns += more->silent_ns;
      keyed->sum.silent_ready_ns += more->silent_ready_ns;
    }
    *(volatile uint64_t*)&keyed->sum.count += 1;  // last: see KeyedSum
    return;
  }
  struct Counts* counted = counts_of_cpu();
  if (counted) {
    ++counted->sums_full;
    counted->sums_full_ns += more->ns;
  }
}

/// Whether the stack of a waker of the thread's wait was forwarded.
static __always_inline bool has_forwarded_waker(const struct ThreadState* thread) {
  uint64_t times = 0;
#pragma unroll
  for (uint32_t i = 0; i < kMaxWakers; ++i)
    times |= thread->waking.copied_ns[i];
  return thread->key.waker && times;
}

/// Whether the end of the thread's wait is reported, not added up: a stack of it was forwarded.
static __always_inline bool is_reported(const struct ThreadState* thread) {
  return each_apart ||
         (pass_on == kPassUnfinished && (thread->is_passed_on || has_forwarded_waker(thread)));
}

/// Reports the end of a wait; 0 if there was no room.  For the stack, as find_script().
__attribute__((noinline)) int send_end(const struct ThreadState* thread, uint64_t since_ns,
                                       uint64_t woken_ns, uint64_t silent_ns, uint64_t now) {
  if (!thread)
    return 0;
  struct {
    struct SampleRecord record;
    struct EndedWait ended;
  } end = {
      .record = {.kind = kRecordWaitEnded,
                 .time_ns = now,
                 .tgid = thread->key.tgid,
                 .tid = thread->key.tid},
      .ended = {
          .key = thread->key, .since_ns = since_ns, .woken_ns = woken_ns, .silent_ns = silent_ns}};
  if (thread->key.waker)
#pragma unroll
    for (uint32_t i = 0; i < kMaxWakers; ++i)
      end.ended.copied_ns[i] = thread->waking.copied_ns[i];
  return !bpf_ringbuf_output(&ring, (void*)&end, sizeof end, 0);
}

/// Ends the wait of a thread with with_times.
static __always_inline void end_timed_wait(struct ThreadState* thread, uint64_t since_ns,
                                           uint64_t woken_ns, uint64_t silent_ns, uint64_t now) {
  if (woken_ns < since_ns || thread->key.state == 0)
    woken_ns = since_ns;
  if (silent_ns && silent_ns < since_ns)
    silent_ns = since_ns;
  if (is_reported(thread) && send_end(thread, since_ns, woken_ns, silent_ns, now))
    return;
  struct Sum more = {.ns = now - since_ns, .last_ns = now, .ready_ns = now - woken_ns};
  if (silent_ns) {
    more.silent_ns = now - silent_ns;
    more.silent_ready_ns = silent_ns > woken_ns ? more.silent_ns : more.ready_ns;
  }
  add(thread, &thread->key, &more);
}
