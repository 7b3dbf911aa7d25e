// Preload this library: of a program's allocations, number FAIL_AT fails; with FAIL_ON, all after
// it also fail.  With FAIL_COUNT, the library writes the number of allocations to that descriptor
// at the end.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The C library's own functions, which no other library replaces.
extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* block, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);

static atomic_ulong made;
static unsigned long fail_at;
static int fails_on, count_fd = -1;

static unsigned long number_of(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : strtoul(text, NULL, 10);
}

__attribute__((constructor)) static void begin(void) {
  fail_at = number_of("FAIL_AT");
  fails_on = getenv("FAIL_ON") != NULL;
  if (getenv("FAIL_COUNT") != NULL)
    count_fd = (int)number_of("FAIL_COUNT");
  made = 0;
}

__attribute__((destructor)) static void end(void) {
  if (count_fd >= 0)
    dprintf(count_fd, "%lu\n", (unsigned long)made);
}

static int fails(void) {
  const unsigned long number = ++made;
  if (fail_at == 0 || number < fail_at || (number > fail_at && !fails_on))
    return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails() ? NULL : __libc_calloc(count, bytes); }
void* realloc(void* block, size_t bytes) { return fails() ? NULL : __libc_realloc(block, bytes); }
void* memalign(size_t alignment, size_t bytes) {
  return fails() ? NULL : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == NULL ? ENOMEM : 0;
}
