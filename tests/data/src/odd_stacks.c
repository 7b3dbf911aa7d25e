// Stacks that no call frame information describes: calls from a stub that was made at run time, as
// python -X perf makes them, fibers, and assembly that uses the frame pointer for a number.
//
//     odd_stacks CASE MS
//
// Each case uses MS ms of CPU time, and sleeps briefly now and then.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static double end_s;
static int stub_kinds = 2;

static double used_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) static void spin(void) {
  volatile unsigned long sum = 0;
  for (unsigned long i = 0; i < 3000000; ++i)
    sum = sum * 31 + i;
}

__attribute__((noinline)) static void rest(void) {
  usleep(2000);
  __asm__ volatile("");
}

__attribute__((noinline)) static long innermost(void) {
  while (used_s() < end_s) {
    spin();
    rest();
  }
  return 1;
}

/// A function that a stub calls.  Its first argument is the place of the stubs, the last the
/// function that the next stub calls.
typedef long (*Called)(void* stubs, long depth, long ignored, void* function);

static Called next_stub(void* stubs, long depth) {
  Called stub;
  void* place = (char*)stubs + 16 * (depth % stub_kinds);
  memcpy(&stub, &place, sizeof stub);
  return stub;
}

__attribute__((noinline)) static long in_a_stub(void* stubs, long depth, long ignored, void* self) {
  const long result =
      depth == 0 ? innermost() : next_stub(stubs, depth)(stubs, depth - 1, ignored, self);
  __asm__ volatile("" : : "r"(stubs));
  return result + 1;
}

static long run_stubs(void) {
  static const unsigned char code[32] = {
      0x48, 0x83, 0xec, 8,    0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3, 0, 0, 0, 0, 0,  // no registers
      0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};  // frame pointer
  void* stubs = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stubs == MAP_FAILED)
    return 0;
  memcpy(stubs, code, sizeof code);
  if (mprotect(stubs, sizeof code, PROT_READ | PROT_EXEC) != 0)
    return 0;
  void* function;
  const Called called = in_a_stub;
  memcpy(&function, &called, sizeof function);
  const long depth = next_stub(stubs, 0)(stubs, 5, 0, function);
  __asm__ volatile("" : : "r"(function));
  return depth;
}

static ucontext_t first, fiber;

__attribute__((noinline)) static void in_a_fiber(void) {
  innermost();
  __asm__ volatile("");
}

static long run_fiber(void) {
  static char stack[262144];
  if (getcontext(&fiber) != 0)
    return 0;
  fiber.uc_stack.ss_sp = stack;
  fiber.uc_stack.ss_size = sizeof stack;
  fiber.uc_link = &first;
  memset(stack, 0x5a, sizeof stack);  // no zero follows the fiber's first frame
  makecontext(&fiber, in_a_fiber, 0);
  return swapcontext(&first, &fiber) == 0;
}

/// Calls a function while the frame pointer is 0, as hand-written loops do.
void with_zero(void (*function)(void));
__asm__(
    ".pushsection .text\n"
    ".globl with_zero\n"
    ".type with_zero, @function\n"
    "with_zero:\n"
    "  push %rbp\n"
    "  push %rbx\n"
    "  sub $24, %rsp\n"
    "  xor %ebp, %ebp\n"
    "  call *%rdi\n"
    "  add $24, %rsp\n"
    "  pop %rbx\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size with_zero, . - with_zero\n"
    ".popsection\n");

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  end_s = used_s() + atof(argv[2]) / 1000;
  if (strcmp(argv[1], "stub") == 0)
    stub_kinds = 1;
  if (strncmp(argv[1], "stub", 4) == 0)
    return run_stubs() == 7 ? 0 : 1;
  if (strcmp(argv[1], "fiber") == 0)
    return run_fiber() ? 0 : 1;
  if (strcmp(argv[1], "zero") == 0) {
    with_zero(in_a_fiber);
    return 0;
  }
  return 2;
}
