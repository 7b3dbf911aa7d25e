/* A traced program's own report: the program counts what it allocates and frees, and writes the
 * counts to standard output, as `name value` pairs like those of heap_dump.
 *
 * It is in C and writes with write(2), so that nothing else allocates.
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

static atomic_long bytes, count, live, live_count, peak, temporary, unknown, failed;
static _Thread_local void* last;

/* Counts a new block; uses only its address. */
static KEEP void came(void* block, size_t size) {
  __asm__ volatile("" : "+r"(block));
  bytes += size;
  count += 1;
  live_count += 1;
  const long now = live += size;
  if (now > peak)
    peak = now;
  last = block;
}

static KEEP void went(void* block, size_t size) {
  live -= size;
  live_count -= 1;
  if (last == block) {
    temporary += 1;
    last = NULL;
  }
}

static void say(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (write(1, text, (size_t)size) != size)
    _exit(3);
}

static void tell(void) {
  say("bytes %ld count %ld live %ld live_count %ld peak %ld temporary %ld unknown %ld failed %ld\n",
      bytes, count, live, live_count, peak, temporary, unknown, failed);
}

static KEEP void* get(size_t size) {
  void* block = malloc(size);
  came(block, size);
  return block;
}

static KEEP void drop(void* block, size_t size) {
  went(block, size);
  free(block);
}

struct mode {
  const char* name;
  void (*run)(void);
};

/* Runs the mode that argv[1] names; returns 2 if there is none. */
static int run_mode(int argc, char** argv, const struct mode* modes, unsigned number) {
  for (unsigned i = 0; i < number; ++i) {
    if (argc == 2 && strcmp(argv[1], modes[i].name) == 0) {
      modes[i].run();
      tell();
      return 0;
    }
  }
  return 2;
}
