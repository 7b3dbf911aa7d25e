// Threads that run very briefly: each runs for less than a millisecond in all.
//
// Usage: brief THREADS TURNS WORK_US
//
// In each of its TURNS a thread sleeps for 50 ms, then works for WORK_US microseconds of its CPU
// time.  At the end the program prints its CPU time in nanoseconds.
// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long turns, work_ns;
static volatile uint64_t sink;

static int64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void work(void) {
  const int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + work_ns;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
    for (int i = 0; i < 1000; ++i)
      sink = sink + 1;
}

static void* take_turns(void* nothing) {
  for (long i = 0; i < turns; ++i) {
    const struct timespec briefly = {0, 50 * 1000 * 1000};
    nanosleep(&briefly, NULL);
    work();
  }
  return nothing;
}

int main(int count, char** arguments) {
  if (count != 4)
    return 2;
  const long threads = atol(arguments[1]);
  turns = atol(arguments[2]);
  work_ns = atol(arguments[3]) * 1000;
  pthread_t* all = calloc((size_t)threads, sizeof *all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (long i = 0; i < threads; ++i)
    if (pthread_create(&all[i], &attributes, take_turns, NULL) != 0)
      return 1;
  for (long i = 0; i < threads; ++i)
    pthread_join(all[i], NULL);
  printf("%lld\n", (long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
  return 0;
}
