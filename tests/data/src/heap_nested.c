/* An allocator whose functions call each other by name, so that a library which replaces them sees
 * the inner calls as well.  Its free allocates as well, and reuses no memory.
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static alignas(4096) char room[64 << 20];
static atomic_size_t used;
static jmp_buf* jump;
static _Thread_local int is_noting;

/* Malloc leaves by longjmp(3) instead of allocating this number of bytes. */
#define HEAP_JUMPS 54321
void heap_jump_to(jmp_buf* there) { jump = there; }

void* malloc(size_t size);
void free(void* block);

/* The size of a block is stored before it. */
void* memalign(size_t alignment, size_t size) {
  if (alignment < 16)
    alignment = 16;
  const size_t start = atomic_fetch_add(&used, size + 2 * alignment);
  if (size > sizeof room || start + size + 2 * alignment > sizeof room)
    return NULL;
  const size_t at = (start + 16 + alignment - 1) / alignment * alignment;
  memcpy(room + at - sizeof size, &size, sizeof size);
  return room + at;
}

void* malloc(size_t size) {
  if (size == HEAP_JUMPS && jump != NULL)
    longjmp(*jump, 1);
  return memalign(16, size);
}

void free(void* block) {
  if (block == NULL || is_noting)
    return;
  is_noting = 1;
  free(malloc(24));
  is_noting = 0;
}

void* calloc(size_t count, size_t size) {
  void* block = malloc(count * size);
  return block == NULL ? NULL : memset(block, 0, count * size);
}

void* realloc(void* block, size_t size) {
  void* moved = malloc(size);
  size_t old = 0;
  if (block == NULL || moved == NULL)
    return moved;
  memcpy(&old, (const char*)block - sizeof old, sizeof old);
  memcpy(moved, block, old < size ? old : size);
  free(block);
  return moved;
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  *result = memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}
