// Holds a mutex that it has waited for: keep_long() and keep_short(), ten times each.  Between
// these, keep_free() holds it when it is free, which no wait shows.  Prints a line for each of the
// two:
//
//     NAME LEAST MOST
//
// It held the mutex between LEAST and MOST microseconds, by the clock that offcpu reads.  LEAST is
// from the return of the locking function to the call of the unlocking one; MOST is from the other
// thread's release to the return of that call.
// SPDX-License-Identifier: MIT
#include <pthread.h>

#include "observed_wait.h"

#define KEEP __attribute__((noinline, noclone))

namespace {

volatile long after = 0;  ///< a write to it keeps the call before from being a jump
pthread_barrier_t barrier;
Observed wait;

}  // namespace

pthread_mutex_t g_kept = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_timed = PTHREAD_MUTEX_INITIALIZER;

KEEP void keep(long ms, long& least_ns, long& most_ns) {
  pthread_mutex_lock(&g_kept);
  const long locked_ns = now_ns();
  pause_ms(ms);
  least_ns += now_ns() - locked_ns;
  pthread_mutex_unlock(&g_kept);
  most_ns += now_ns();
}
KEEP void keep_long(long& least_ns, long& most_ns) {
  keep(15, least_ns, most_ns);
  after = after + 1;
}
KEEP void keep_short(long& least_ns, long& most_ns) {
  keep(5, least_ns, most_ns);
  after = after + 2;
}
KEEP void keep_free() {
  pthread_mutex_lock(&g_kept);
  pause_ms(10);
  pthread_mutex_unlock(&g_kept);
  after = after + 3;
}

namespace {

constexpr int kRounds = 10;

void* release_rounds(void*) {
  for (int round = 0; round < kRounds; ++round) {
    pthread_mutex_lock(&g_kept);
    pthread_barrier_wait(&barrier);
    wait.await_sleep();
    wait.release();
    pthread_mutex_unlock(&g_kept);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  return nullptr;
}

void run(const char* name, void (*keep)(long&, long&)) {
  long least_ns = 0, most_ns = 0;
  pthread_t other{};
  pthread_create(&other, nullptr, release_rounds, nullptr);
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&barrier);
    wait.start();
    keep(least_ns, most_ns);
    pthread_barrier_wait(&barrier);
    most_ns -= wait.release_ns();
    wait.add();
    keep_free();
    pthread_barrier_wait(&barrier);
  }
  pthread_join(other, nullptr);
  printf("%s %ld %ld\n", name, least_ns / 1000, most_ns / 1000);
}

/// The steps of the two threads, which do not wait for a futex in between: a place of a thread's
/// locks may be that of the next one.
std::atomic<int> step = 0;
void await_step(int wanted) {
  while (step != wanted)
    pause_us(50);
}

/// Locks a free mutex after a timeout, and releases it while another thread waits for it.
KEEP void keep_after_timeout() {
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  await_step(1);
  pthread_mutex_timedlock(&g_timed, &until);
  step = 2;
  await_step(3);
  pthread_mutex_lock(&g_timed);
  step = 4;
  wait.await_sleep();
  pthread_mutex_unlock(&g_timed);
  after = after + 4;
}

void* keep_too_long(void*) {
  pthread_mutex_lock(&g_timed);
  step = 1;
  await_step(2);
  pthread_mutex_unlock(&g_timed);
  step = 3;
  await_step(4);
  wait.start();
  pthread_mutex_lock(&g_timed);
  pthread_mutex_unlock(&g_timed);
  return nullptr;
}

void run_timeout() {
  pthread_t other{};
  pthread_create(&other, nullptr, keep_too_long, nullptr);
  keep_after_timeout();
  pthread_join(other, nullptr);
}

}  // namespace

int main() {
  pthread_barrier_init(&barrier, nullptr, 2);
  run("keep_long", keep_long);
  run("keep_short", keep_short);
  run_timeout();
}
