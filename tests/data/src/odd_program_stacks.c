// Those of odd_programs whose stacks leave little room, or are others than the thread's.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "odd_programs.h"

static void* on_other_stack(void* argument) {
  const stack_t stack = {.ss_sp = pages(kStack), .ss_size = kStack};
  expect(sigaltstack(&stack, NULL) == 0, "sigaltstack");
  long sent = 0;
  for (const double end = now() + seconds; now() < end; ++sent)
    pthread_kill(pthread_self(), SIGUSR1);
  expect(sent > 0, "no signal");
  stack_t now_set;
  expect(sigaltstack(NULL, &now_set) == 0 && now_set.ss_sp == stack.ss_sp,
         "another alternate stack");
  return argument;
}
void other_stack(void) {
  handle(SIGUSR1, count, SA_ONSTACK);
  in_threads(on_other_stack, 0);
}
// Too small for the frame of a signal: the program sends none while it is set.
static void* with_small_stack(void* argument) {
  const stack_t small = {.ss_sp = pages(kPage), .ss_size = 2048}, none = {.ss_flags = SS_DISABLE};
  const double end = now() + seconds;
  if (sigaltstack(&small, NULL) != 0)
    return argument;  // the kernel refuses it where frames are larger
  work_until(end - seconds / 2);
  stack_t set;
  expect(sigaltstack(&none, &set) == 0 && set.ss_size == 2048, "the small stack is gone");
  work_until(end);
  return argument;
}
void small_stack(void) {
  with_small_stack(NULL);
  in_threads(with_small_stack, 0);
}
// Leaves 3.3 KB of the thread's stack.
static __attribute__((noinline)) void use_up(size_t left) {
  pthread_attr_t attributes;
  void* low;
  size_t bytes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  const uintptr_t here = (uintptr_t)__builtin_frame_address(0) - 512;
  volatile char* room = alloca(here - ((uintptr_t)low + left));
  room[0] = 1;
  stack_t none;
  expect(sigaltstack(NULL, &none) == 0 && none.ss_flags == SS_DISABLE,
         "an alternate stack that the program did not set");
  work_until(now() + seconds);
}
static void* use_most(void* argument) {
  use_up(3300);
  return argument;
}
void little_stack(void) { in_threads(use_most, 32 * 1024); }
void little_of_large(void) { in_threads(use_most, 1024 * 1024); }
static void work_long(void) { work_until(now() + seconds); }
void small_coroutine(void) {
  char* const region = pages(2 * kPage);
  mprotect(region, kPage, PROT_NONE);
  work_until(now());  // the dynamic linker needs more room when it finds a function
  ucontext_t coroutine;
  prepare(&coroutine, work_long, region, 2 * kPage);
  swapcontext(&back, &coroutine);
}
// The handler leaves to another context, from which another handler comes back to it.
static ucontext_t contexts[2];
static int current;
static void switch_contexts(int number, siginfo_t* info, void* context) {
  count(number, info, context);
  const volatile int from = current;
  current = !from;
  swapcontext(&contexts[from], &contexts[current]);
  expect(current == from, "another handler's variable");
}
static void raise_always(void) {
  for (const double end = now() + seconds; now() < end;)
    raise(SIGPROF);
}
void preempts(void) {
  prepare(&contexts[1], raise_always, pages(kStack), kStack);
  handle(SIGPROF, switch_contexts, 0);
  ucontext_t coroutine;
  prepare(&coroutine, raise_always, pages(kStack), kStack);
  swapcontext(&back, &coroutine);
  expect(handled > 1, "no signal");
}
static void* nothing(void* argument) {
  check_work();
  return argument;
}
void tiny_threads(void) {
  for (const double end = now() + seconds; now() < end;)
    pthread_join(start(nothing, NULL, (size_t)sysconf(_SC_THREAD_STACK_MIN)), NULL);
}
