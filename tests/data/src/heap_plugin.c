/* A library that a program loads and unloads.  It is built twice, with different code at the same
 * addresses.  If HEAP_PLUGIN_WAITS is set, its constructor waits for a thread that calls operator
 * new; if HEAP_PLUGIN_READS is set, for a byte of standard input.
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* operator new and delete: only the library of malloctrace defines them here. */
extern void* _Znwm(size_t) __attribute__((weak));
extern void _ZdlPv(void*) __attribute__((weak));

static void* use_new(void* nothing) {
  _ZdlPv(_Znwm(10));
  return nothing;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  char byte;
  if (getenv("HEAP_PLUGIN_READS") != NULL && read(0, &byte, 1) != 1)
    abort();
  if (getenv("HEAP_PLUGIN_WAITS") == NULL || &_Znwm == NULL || &_ZdlPv == NULL)
    return;
  if (pthread_create(&thread, NULL, use_new, NULL) != 0)
    abort();
  pthread_join(thread, NULL);
}

__attribute__((noinline)) void* first(size_t size) {
  void* block = malloc(size);
  __asm__ volatile("" : "+r"(block));
  return block;
}

__attribute__((noinline)) void* second(size_t size) {
  char room[1000];
  __asm__ volatile("" ::"r"(room) : "memory");
  void* block = malloc(size);
  __asm__ volatile("" : "+r"(block));
  return block;
}
