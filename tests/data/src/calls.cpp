// Calls of functions that end in every way.
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

long now_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000 + time.tv_nsec / 1'000;
}

void spin(long us) {
  for (const long end = now_us() + us; now_us() < end;)
    for (unsigned i = 0; i < 100; ++i)
      sink = sink + i;
}

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
  if (request % 100 < 3)
    slow_part();
  else
    fast_part();
  sink = sink + 1;
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
  if (request < 3)
    long_sleep();
  else
    usleep(1'000);
  sink = sink + 1;
}

int main(int argc, char** /*unused*/) {
  if (argc > 1) {  // sleep
    for (int i = 0; i < 10; ++i)
      sleeps(i);
    return 0;
  }
  for (int i = 0; i < 1'000; ++i)
    handle(i);
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
