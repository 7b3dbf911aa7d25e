// Uses CPU time below 4,000 calls and below few, in functions of their own: "threads SECONDS" in
// two threads at once, SECONDS each; "turns SECONDS" in one thread, 4 ms in turn, SECONDS in all.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double wanted;

static double used(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void spin(double until) {
  while (used() < until)
    for (volatile int i = 0; i < 10000; ++i)
      ;
}

__attribute__((noinline)) static void spin_below_many(double until) { spin(until); }
__attribute__((noinline)) static void spin_below_few(double until) { spin(until); }

__attribute__((noinline)) static int descend(int calls, double until) {
  if (calls == 0) {
    spin_below_many(until);
    return 0;
  }
  int depth = descend(calls - 1, until);
  __asm__ volatile("" : "+r"(depth));  // no jump takes the place of the call
  return depth + 1;
}

enum { kCalls = 4000 };

static void* run_deep(void* unused) {
  descend(kCalls, wanted);
  return unused;
}

static void* run_shallow(void* unused) {
  spin_below_few(wanted);
  return unused;
}

static void* take_turns(void* unused) {
  const double turn = 0.004;
  for (double until = turn; until < wanted; until += 2 * turn) {
    descend(kCalls, until);
    spin_below_few(until + turn);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  wanted = atof(argv[2]);
  pthread_t threads[2];
  const int count = strcmp(argv[1], "threads") == 0 ? 2 : 1;
  pthread_create(&threads[0], 0, count == 2 ? run_deep : take_turns, 0);
  if (count == 2)
    pthread_create(&threads[1], 0, run_shallow, 0);
  for (int i = 0; i < count; ++i)
    pthread_join(threads[i], 0);
}
