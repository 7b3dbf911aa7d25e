// Calls of functions that end in every way.  Some functions have slow calls, of which the program
// prints "FUNCTION LEAST MOST FAST_US": by what the clock shows inside each call, LEAST calls were
// longer than the limit of the test; by what it shows outside, MOST calls.  FAST_US is the time of
// those among the MOST calls that were not meant to be slow: a busy machine interrupted them.
// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <stdexcept>

#define APART extern "C" __attribute__((noinline, noclone, visibility("default")))

namespace {

volatile unsigned sink;
jmp_buf target;

long read_us(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000 + time.tv_nsec / 1'000;
}
long now_us() { return read_us(CLOCK_THREAD_CPUTIME_ID); }
long wall_us() { return read_us(CLOCK_MONOTONIC); }

void spin(long us) {
  for (const long end = now_us() + us; now_us() < end;)
    for (unsigned i = 0; i < 100; ++i)
      sink = sink + i;
}

struct SlowCalls {
  const char* function;
  long limit_us;
  int least = 0, most = 0;
  long fast_us = 0;
  long inside_us = 0;  ///< of the current call
};
SlowCalls slow_handles{.function = "handle", .limit_us = 15'000};
SlowCalls slow_sleeps{.function = "sleeps", .limit_us = 10'000};

template <typename Call>
void count(SlowCalls& slow, bool is_meant, Call call) {
  const long started_us = wall_us();
  call();
  const long outside_us = wall_us() - started_us;
  slow.least += slow.inside_us > slow.limit_us ? 1 : 0;
  if (outside_us <= slow.limit_us)
    return;
  ++slow.most;
  slow.fast_us += is_meant ? 0 : outside_us;
}

void print(const SlowCalls& slow) {
  printf("%s %d %d %ld\n", slow.function, slow.least, slow.most, slow.fast_us);
}

bool is_slow_handle(int request) { return request % 100 < 3; }
bool is_slow_sleep(int request) { return request < 3; }

}  // namespace

// 3 of 100 calls are slow.
APART void slow_part() {
  spin(20'000);
  sink = sink + 1;
}
APART void fast_part() {
  spin(20);
  sink = sink + 1;
}
APART void handle(int request) {
  const long started_us = wall_us();
  if (is_slow_handle(request))
    slow_part();
  else
    fast_part();
  slow_handles.inside_us = wall_us() - started_us;
}

// Its last step is a jump to another function.
APART void last_step() {
  spin(2'000);
  sink = sink + 1;
}
APART void jumps_on(int request) {
  sink = sink + static_cast<unsigned>(request);
  last_step();
}

APART int recurse(int depth) {
  sink = sink + 1;
  return depth == 0 ? 0 : recurse(depth - 1) + static_cast<int>(sink % 2);
}

APART void leaves(int request) {
  if (request % 2 == 0)
    longjmp(target, 1);
  sink = sink + 1;
}

APART void leave_or_return(int request) {
  if (setjmp(target) == 0)
    leaves(request);
}

APART int throws(int request) {
  if (request % 2 == 0)
    throw std::runtime_error("an even number");
  sink = sink + 1;
  return request;
}

APART void* ends_inside(void* /*unused*/) {
  sink = sink + 1;
  pthread_exit(nullptr);
}

APART void exits_inside() {
  sink = sink + 1;
  exit(0);
}

// 3 of 10 calls sleep for long.
APART void long_sleep() {
  usleep(20'000);
  sink = sink + 1;
}
APART void sleeps(int request) {
  const long started_us = wall_us();
  if (is_slow_sleep(request))
    long_sleep();
  else
    usleep(1'000);
  slow_sleeps.inside_us = wall_us() - started_us;
}

int main(int argc, char** /*unused*/) {
  if (argc > 1) {  // sleep
    for (int i = 0; i < 10; ++i)
      count(slow_sleeps, is_slow_sleep(i), [i] { sleeps(i); });
    print(slow_sleeps);
    return 0;
  }
  for (int i = 0; i < 1'000; ++i)
    count(slow_handles, is_slow_handle(i), [i] { handle(i); });
  print(slow_handles);
  for (int i = 0; i < 10; ++i)
    jumps_on(i);
  for (int i = 0; i < 10; ++i)
    recurse(5);
  for (int i = 0; i < 20; ++i)
    leave_or_return(i);
  int caught = 0;
  for (int i = 0; i < 20; ++i)
    try {
      throws(i);
    } catch (const std::runtime_error&) {
      ++caught;
    }
  for (int i = 0; i < 3; ++i) {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, ends_inside, nullptr) == 0)
      pthread_join(thread, nullptr);
  }
  printf("caught %d\n", caught);
  fflush(stdout);
  exits_inside();
}
