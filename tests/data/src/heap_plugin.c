/* A library that comes and goes; built twice, with different code at the same addresses.
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

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
