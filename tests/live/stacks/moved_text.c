// Moves its own text into anonymous memory at the same addresses, as programs do so that it has
// huge pages, and spends its time in it.
//
// moved_text MODE MS: prints its process number once that is done, and runs for MS milliseconds of
// CPU time.
//   over    maps memory over the text and copies the text there, as node and PHP do
//   under   moves a copy of the text there, which the kernel reports to nobody
//   other   maps memory over the text and makes other code there
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kHugePage = 2 << 20, kBreakpoint = 0xcc };

// SECTION is ".text.moved", or "moved" for a segment of its own.  It has a whole huge page before
// the function moved_end.
#define MOVED __attribute__((noinline, section(SECTION)))
MOVED __attribute__((aligned(kHugePage))) unsigned moved_inner(unsigned x) {
  for (int i = 0; i < 20000; ++i)
    x = x * 1664525U + 1013904223U;
  return x;
}
MOVED unsigned moved_outer(unsigned x) { return moved_inner(x) + moved_inner(x + 1) + 1; }
MOVED __attribute__((aligned(kHugePage))) unsigned moved_end(unsigned x) { return x + 2; }

// Code of the same meaning as moved_outer() at its place: mov $20000,%ecx; 1: dec %ecx; jnz 1b; ret
static const unsigned char kOther[] = {0xb9, 0x20, 0x4e, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void* map(void* at, int flags) {
  void* memory = mmap(at, kHugePage, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (memory == MAP_FAILED)
    exit(2);
  return memory;
}

static void move(const char* mode) {
  char* text = (char*)moved_inner;
  char* copy = map(NULL, 0);
  memcpy(copy, text, kHugePage);
  if (strcmp(mode, "under") == 0) {
    if (mremap(copy, kHugePage, kHugePage, MREMAP_MAYMOVE | MREMAP_FIXED, text) == MAP_FAILED)
      exit(2);
  } else {
    map(text, MAP_FIXED);
    memcpy(text, copy, kHugePage);
    munmap(copy, kHugePage);
  }
  if (strcmp(mode, "other") == 0) {
    char* outer = (char*)moved_outer;
    memset(text, kBreakpoint, kHugePage);
    memcpy(outer, kOther, sizeof kOther);
  }
  if (mprotect(text, kHugePage, PROT_READ | PROT_EXEC) != 0)
    exit(2);
}

static long used_ms(void) { return clock() / (CLOCKS_PER_SEC / 1000); }

int main(int count, char** arguments) {
  if (count != 3)
    return 2;
  move(arguments[1]);
  printf("%d\n", getpid());
  fflush(stdout);
  unsigned sum = moved_end(0);
  for (const long end = used_ms() + atol(arguments[2]); used_ms() < end;)
    for (unsigned i = 0; i < 20; ++i)
      sum += moved_outer(i);
  return sum == 0;
}
