// Sleeps in 65,536 different stacks, of at least 80 frames each, while another thread waits. Prints
// in how many of them the thread left its CPU.  The other thread sleeps for 10 ms five times before
// and after that.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

enum { kChoices = 16, kBelow = 64 };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

#define NOINLINE __attribute__((noinline, noclone))
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

static void go_on(unsigned left, unsigned path);

NOINLINE static void sleep_once(void) {
  const struct timespec short_time = {0, 20000};
  nanosleep(&short_time, NULL);
  NO_TAIL_CALL();
}

NOINLINE static void one(unsigned left, unsigned path) {
  go_on(left, path);
  NO_TAIL_CALL();
}

NOINLINE static void zero(unsigned left, unsigned path) {
  go_on(left, path);
  NO_TAIL_CALL();
}

static inline __attribute__((always_inline)) void go_on(unsigned left, unsigned path) {
  if (left == 0)
    sleep_once();
  else if (left <= kChoices && (path >> (left - 1) & 1))
    one(left - 1, path);
  else
    zero(left - 1, path);
}

static long sleeps(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

NOINLINE static void sleep_apart(void) {
  const struct timespec time = {0, 10000000};
  nanosleep(&time, NULL);
  NO_TAIL_CALL();
}

/// The stack of the first sleeps is that of the last ones.
NOINLINE static void* wait_throughout(void* unused) {
  for (int i = 0; i < 10; ++i) {
    if (i == 5)
      pthread_mutex_lock(&g_lock);
    sleep_apart();
  }
  pthread_mutex_unlock(&g_lock);
  return unused;
}

int main(void) {
  pthread_t other;
  prctl(PR_SET_TIMERSLACK, 1);
  pthread_mutex_lock(&g_lock);
  if (pthread_create(&other, NULL, wait_throughout, NULL) != 0)
    return 1;
  unsigned count = 0;
  for (unsigned path = 0; path < 1U << kChoices; ++path) {
    const long before = sleeps();
    go_on(kChoices + kBelow, path);
    count += sleeps() != before;
  }
  pthread_mutex_unlock(&g_lock);
  pthread_join(other, NULL);
  printf("%u\n", count);
  return 0;
}
