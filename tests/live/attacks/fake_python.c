// Looks like Python 3.11 to a recorder, and has a stack of functions that are as expensive as can
// be.
//
// usage: python3.11 FUNCTIONS TABLE_BYTES NAME_BYTES [new]
//
// All functions share a table of lines of TABLE_BYTES and a name of NAME_BYTES.  With "new" they
// are other functions each time.  Source of the layout: CPython 3.11 (languages/python/binary.cpp).
// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct runtime {
  char bytes[4096];
};
extern struct runtime _PyRuntime;
extern unsigned long Py_Version;
struct runtime _PyRuntime;
unsigned long Py_Version = 0x030b02f0;

enum { kCode = 256, kFrame = 80, kTextHead = 48, kTableHead = 32 };

static void set_word(char* at, uint64_t value) { memcpy(at, &value, sizeof value); }
static void set_pointer(char* at, const void* value) { memcpy(at, &value, sizeof value); }
static void set_half(char* at, uint32_t value) { memcpy(at, &value, sizeof value); }

static char* new_text(size_t length) {
  char* text = calloc(1, kTextHead + length + 1);
  set_word(text, 5);
  set_word(text + 16, length);
  set_word(text + 24, 0x1234);
  set_half(text + 32, 1 << 2 | 0x20 | 0x40);  // one byte a character, compact, ASCII
  memset(text + kTextHead, 'n', length);
  return text;
}

static char* new_table(size_t bytes) {
  char* table = calloc(1, kTableHead + bytes);
  set_word(table, 5);
  set_word(table + 16, bytes);
  for (size_t i = 0; i < bytes; ++i)  // each entry is of one instruction, on another line
    table[kTableHead + i] = (char)(0x80 | (i % 2 != 0 ? 11 : 12) << 3);
  return table;
}

void _PyEval_EvalFrameDefault(char* codes, size_t count, int are_new);
__attribute__((noinline)) void _PyEval_EvalFrameDefault(char* codes, size_t count, int are_new) {
  static volatile unsigned long sink;
  for (uint32_t generation = 1;; ++generation) {
    for (int i = 0; i < 2000000; ++i)
      sink = sink + 1;
    for (size_t i = 0; are_new && i < count; ++i)
      set_half(codes + i * kCode + 72, generation * 8000 + (uint32_t)i);
  }
}

int main(int argc, char** argv) {
  if (argc < 4)
    return 2;
  alarm(60);
  const size_t count = strtoul(argv[1], NULL, 10);
  char* table = new_table(strtoul(argv[2], NULL, 10));
  char* name = new_text(strtoul(argv[3], NULL, 10));
  char* file = new_text(9);
  char* interpreter = calloc(1, 4096);
  char* thread = calloc(1, 4096);
  char* entry = calloc(1, 4096);
  char* codes = calloc(count, kCode);
  char* frames = calloc(count, kFrame);
  set_pointer((char*)&_PyRuntime + 40, interpreter);
  set_pointer(interpreter + 16, thread);
  set_word(thread + 152, (uint64_t)pthread_self());
  set_pointer(thread + 56, entry);
  set_pointer(entry + 8, frames);
  for (size_t i = 0; i < count; ++i) {
    char* code = codes + i * kCode;
    char* frame = frames + i * kFrame;
    set_word(code, 5);
    set_half(code + 72, (uint32_t)i);
    set_pointer(code + 112, file);
    set_pointer(code + 120, name);
    set_pointer(code + 128, name);
    set_pointer(code + 136, table);
    set_pointer(frame + 32, code);
    set_pointer(frame + 48, i + 1 < count ? frame + kFrame : NULL);
    set_pointer(frame + 56, code + 190);
    frame[68] = i + 1 == count;
  }
  _PyEval_EvalFrameDefault(codes, count, argc > 4);
}
