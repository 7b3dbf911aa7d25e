// A program whose stacks take as long as possible to walk.
//
// It pretends to be an interpreter (PYTHON, PHP or RUBY is defined), and its structures are made
// up:
//   threads     a circular list of threads, the fields of which are unreadable
//   frames      a circular list of frames, the functions of which are unreadable
//   deep        a circular list of frames in which everything is readable, each in another page
//   pointers    native frames, found by frame pointers, in code that was never in memory
//   windows     the same, and the stack has a hole after each frame
// The interpreter's state leads to them once they are made.
// Usage: slow_walk KIND SECONDS [NAPS]: computes for that CPU time, or sleeps for a millisecond
// that often.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { kPage = 4096, kCount = 16384, kFrames = 8000 };

static void* memory_of(size_t bytes) {
  void* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    abort();
  return memory;
}
static void put(char* at, size_t offset, const void* value) {
  memcpy(at + offset, &value, sizeof value);
}

volatile uint64_t sink;
static int naps;
static void compute(double seconds) {
  struct timespec now;
  for (; naps > 0; --naps)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  do {
    for (int i = 0; i < 20000; ++i)
      sink += i;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec + now.tv_nsec / 1e9 < seconds);
}

/// Makes a circular list: object I has the address of I + 1 at `next`.  The object ends `readable`
/// bytes before a page that is not in memory.
static char* list(int count, size_t next, size_t readable) {
  char* memory = memory_of(2UL * kPage * count);
  char* first = memory + kPage - readable;
  for (int i = 0; i < count; ++i)
    put(first + 2UL * kPage * i, next, first + 2UL * kPage * ((i + 1) % count));
  return first;
}
#define NTH(first, i) ((first) + 2UL * kPage * (i))

/// The address of an object that is not in memory: another one for each number.
static char* absent(int number) {
  static char* memory;
  if (!memory)
    memory = memory_of((kFrames + 1UL) * kPage);
  return memory + (size_t)kPage * number + 64;
}

#if defined(PYTHON)
char _PyRuntime[4096];
const unsigned long Py_Version = 0x030b02f0;
static void make(const char* kind) {
  const int is_deep = !strcmp(kind, "deep");
  char* interpreter = calloc(1, kPage);
  char* state = calloc(1, kPage);
  char* c_frame = calloc(1, kPage);
  put(interpreter, 16, state);
  if (!strcmp(kind, "threads")) {
    put(state, 8, list(kCount, 8, 32));
    put(_PyRuntime, 40, interpreter);
    return;
  }
  put(state, 152, (void*)pthread_self());
  put(state, 56, c_frame);
  char* frames = list(kFrames, 48, 512);
  put(c_frame, 8, frames);
  for (int i = 0; i < kFrames; ++i) {
    char* code = absent(i);
    put(NTH(frames, i), 32, code);
    for (int field = 64; is_deep && field < 192; field += 8)
      put(code, field, code);
  }
  put(_PyRuntime, 40, interpreter);
}
__attribute__((noinline)) void _PyEval_EvalFrameDefault(double seconds) { compute(seconds); }
#define LOOP _PyEval_EvalFrameDefault

#elif defined(PHP)
char executor_globals[4096];
const char header[] = "X-Powered-By: PHP/8.2.1";
static void make(const char* kind) {
  const int is_deep = !strcmp(kind, "deep");
  char* frames = list(kFrames, 48, 512);
  for (int i = 0; i < kFrames; ++i) {
    char* function = absent(i);
    put(NTH(frames, i), 24, function);
    put(NTH(frames, i), 0, absent(kFrames - i));
    if (is_deep) {
      function[0] = 2;
      put(function, 8, absent(kFrames - i));
      put(function, 152, absent(kFrames / 2));
    }
  }
  put(executor_globals, 488, frames);
}
__attribute__((noinline)) void execute_ex(double seconds) { compute(seconds + (header[0] == 'x')); }
#define LOOP execute_ex

#elif defined(RUBY)
const int ruby_api_version[3] = {3, 3, 0};
void* ruby_current_vm_ptr = &ruby_current_vm_ptr;
static void make(const char* kind) {
  const int is_deep = !strcmp(kind, "deep");
  char* vm = calloc(1, kPage);
  char* ractor = calloc(1, kPage);
  put(vm, 8, ractor + 432);
  put(ractor, 432, vm + 8);
  if (!strcmp(kind, "threads")) {
    put(ractor, 256, list(kCount, 0, 40));
    ruby_current_vm_ptr = vm;
    return;
  }
  char* thread = calloc(1, kPage);
  char* native = calloc(1, kPage);
  char* context = calloc(1, kPage);
  char* stack = memory_of(56UL * 2 * kFrames);
  put(ractor, 256, thread);
  put(thread, 0, ractor + 256);
  put(thread, 40, native);
  put(native, 16, (void*)pthread_self());
  put(thread, 48, context);
  put(context, 48, thread);
  put(context, 0, stack);
  put(context, 8, (void*)(7UL * 2 * kFrames));
  put(context, 16, stack);
  for (int i = 0; i < 2 * kFrames; ++i) {
    char* at = absent(i % kFrames);
    put(stack + 56UL * i, 16, at);
    put(stack + 56UL * i, 32, at + 8);
    if (is_deep) {
      put(at, 8, (void*)0x11110001UL);
      put(at, 16, absent(kFrames - i % kFrames) + 128);
    }
  }
  ruby_current_vm_ptr = vm;
}
__attribute__((noinline)) void vm_exec_core(double seconds) { compute(seconds); }
#define LOOP vm_exec_core

#endif

/// push %rbp; mov %rdi, %rbp; dec %rsi; jnz to the dec; pop %rbp; ret
static const unsigned char kSpin[] = {0x55, 0x48, 0x89, 0xfd, 0x48, 0xff,
                                      0xce, 0x75, 0xfb, 0x5d, 0xc3};

/// The thread's stack, and after it the frames that its frame pointer leads to.
enum { kStackBytes = 1 << 20 };
struct Native {
  char* stack;
  size_t distance;  ///< of the frames
  double seconds;
};

/// Runs machine code whose frame pointer leads to frames in code that was never in memory.
static void* run_native(void* of) {
  const struct Native* native = of;
  char* code = mmap(NULL, (kFrames + 1UL) * kPage, PROT_READ | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* spin =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED || spin == MAP_FAILED)
    abort();
  memcpy(spin, kSpin, sizeof kSpin);
  char* frames = native->stack + kStackBytes + kPage - 64;
  for (int i = 0; i < kFrames; ++i) {
    char* frame = frames + native->distance * i;
    put(frame, 0, frame + native->distance);
    put(frame, 8, code + (size_t)kPage * i + 100);
  }
  struct timespec now;
  do {
    ((void (*)(void*, long))(void*)spin)(frames, 10000000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec + now.tv_nsec / 1e9 < native->seconds);
  return NULL;
}

static void run_on_stack(size_t distance, double seconds) {
  struct Native native = {memory_of(kStackBytes + 3UL * kPage * kFrames), distance, seconds};
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  pthread_attr_setstack(&attr, native.stack, kStackBytes);
  if (pthread_create(&thread, &attr, run_native, &native))
    abort();
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  if (argc < 3)
    return 2;
  naps = argc > 3 ? atoi(argv[3]) : 0;
  const double seconds = atof(argv[2]);
  if (!strcmp(argv[1], "pointers") || !strcmp(argv[1], "windows")) {
    run_on_stack(argv[1][0] == 'p' ? 64 : 2 * kPage, seconds);
    return 0;
  }
  make(argv[1]);
  LOOP(seconds);
  return 0;
}
