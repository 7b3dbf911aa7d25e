// Paths of calls to a leaf, as compilers make them: see call_paths.h.  PREFIX names the variant.
// SPDX-License-Identifier: MIT
#include "call_paths.h"

#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define VARIANT(name) JOIN(PREFIX, name)

namespace {

volatile int sink;

// Arguments of qsort's callback, which qsort gives no data.
const CallPath* sorting_path;
int calls_left;

__attribute__((noinline)) void finish(const CallPath* path) {
  path->leaf(path->data);
  sink = sink + 1;  // not a tail call
}

__attribute__((noinline)) void descend(const CallPath* path, int depth) {
  volatile long on_stack[5];
  on_stack[0] = depth;
  if (depth > 0)
    descend(path, depth - 1);
  else
    finish(path);
  sink = static_cast<int>(on_stack[0]);
}

int compare(const void* a, const void* b) {
  if (calls_left-- == 0)
    finish(sorting_path);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

}  // namespace

extern "C" {

void VARIANT(plain)(const CallPath* path) {
  finish(path);
  sink = sink + 1;
}

void VARIANT(recursive)(const CallPath* path) {
  descend(path, path->depth);
  sink = sink + 1;
}

void VARIANT(alloca)(const CallPath* path) {
  char* memory = static_cast<char*>(alloca(static_cast<size_t>(path->depth) + 16));
  memset(memory, 1, static_cast<size_t>(path->depth) + 16);
  finish(path);
  sink = memory[path->depth];
}

void VARIANT(realigned)(const CallPath* path) {
  alignas(64) volatile char wide[128];
  char* memory = static_cast<char*>(alloca(static_cast<size_t>(path->depth) + 16));
  wide[0] = memory[0] = 1;
  finish(path);
  sink = wide[0] + memory[0];
}

void VARIANT(sorting)(const CallPath* path) {
  int numbers[24];
  for (int i = 0; i < 24; ++i)
    numbers[i] = i * 7 % 24;
  sorting_path = path;
  calls_left = 11;
  qsort(numbers, 24, sizeof numbers[0], compare);
  sink = numbers[3];
}

void VARIANT(copying)(const CallPath* path) {
  char from[300];
  char to[300];
  memset(from, path->depth, sizeof from);
  memcpy(to, from, static_cast<size_t>(200 + path->depth % 100));
  memmove(to + 3, to, 290);
  sink = to[17] + static_cast<int>(strlen(to) % 7);
  finish(path);
  sink = sink + 1;
}

}  // extern "C"
