/* Allocates in known patterns.  It reports the counts that the library of malloctrace must have:
 * see heap_told.h.
 *
 *     heap_patterns MODE
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "heap_told.h"

static uint32_t random_of(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

/* Allocates a block with the function that `how` chooses. */
static KEEP void* get_somehow(uint32_t how, size_t size) {
  void* block = NULL;
  switch (how % 8) {
    case 0:
      block = calloc(1, size);
      break;
    case 1:
      if (posix_memalign(&block, 64 << how % 3, size) != 0)
        abort();
      break;
    case 2:
      block = aligned_alloc(256, size);
      break;
    case 3:
      block = memalign(4096, size);
      break;
    case 4:
      block = realloc(NULL, size);
      break;
    case 5:
      block = reallocarray(NULL, size, 1);
      break;
    default:
      block = malloc(size);
  }
  came(block, size);
  return block;
}

static KEEP void* resize(void* block, size_t old_size, size_t size) {
  /* The allocator frees the old block before the new one exists. */
  went(block, old_size);
  void* moved = realloc(block, size);
  came(moved, size);
  return moved;
}

static KEEP void* descend(unsigned depth, uint32_t how, size_t size) {
  void* block = depth == 0 ? get_somehow(how, size) : descend(depth - 1, how, size);
  __asm__ volatile("" : "+r"(block));
  return block;
}

struct held {
  void* block;
  size_t size;
};

static uint32_t largest = 300000;

/* A random sequence of all operations. */
static void play(unsigned steps, uint32_t seed, struct held* all, unsigned places) {
  for (unsigned i = 0; i < steps; ++i) {
    struct held* one = &all[random_of(&seed) % places];
    const uint32_t how = random_of(&seed);
    const size_t size = how % 64 == 0 ? how % largest : how % 700;
    if (one->block == NULL) {
      one->block = descend(how % 30, how >> 8, size);
      one->size = size;
    } else if (how % 4 == 0 && size != 0) {
      one->block = resize(one->block, one->size, size);
      one->size = size;
    } else {
      drop(one->block, one->size);
      one->block = NULL;
    }
  }
}

static struct held table[8][500];

static void run_mixed(void) { play(200000, 12345, table[0], 500); }

static pthread_barrier_t barrier;

/* In each round, a thread frees blocks that its neighbour has allocated. */
static void* run_thread(void* number) {
  const unsigned own = (unsigned)(uintptr_t)number;
  for (unsigned round = 0; round < 4; ++round) {
    play(20000, 1 + own + 100 * round, table[(own + round) % 8], 500);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void run_threads(void) {
  pthread_t threads[8];
  largest = 5000;
  pthread_barrier_init(&barrier, NULL, 8);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (uintptr_t i = 0; i < 8; ++i)
    pthread_create(&threads[i], &attributes, run_thread, (void*)i);
  for (unsigned i = 0; i < 8; ++i)
    pthread_join(threads[i], NULL);
}

static void* come_and_go(void* block) {
  drop(block, 100);
  return get(50);
}

/* Many threads, one after the other. */
static void run_short_threads(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16 * 1024);
  for (unsigned i = 0; i < 500; ++i) {
    pthread_t thread;
    void* block = NULL;
    pthread_create(&thread, &attributes, come_and_go, get(100));
    pthread_join(thread, &block);
    drop(block, 50);
  }
}

static void run_realloc(void) {
  void* block = realloc(NULL, 10);
  came(block, 10);
  for (size_t size = 10; size < 1000000; size = size * 3 / 2) {
    block = resize(block, size, size * 3 / 2);
    if (malloc_usable_size(block) < size * 3 / 2)
      abort();
  }
  void* const volatile same = block;
  const size_t now = malloc_usable_size(same);
  (void)now;
  errno = 0;
  if (realloc(block, PTRDIFF_MAX) != NULL || errno != ENOMEM)
    abort();
  failed += 1;
  went(block, live);
  if (realloc(block, 0) != NULL)
    abort();
}

static void run_failures(void) {
  volatile size_t huge = PTRDIFF_MAX;
  void* aligned = NULL;
  if (malloc(huge) != NULL || calloc(huge, 4) != NULL || reallocarray(NULL, huge, 4) != NULL ||
      posix_memalign(&aligned, 64, huge) != ENOMEM || aligned_alloc(64, huge) != NULL)
    abort();
  failed += 5;
  drop(get(0), 0);
  errno = 5;
  free(NULL);
  void* block = get(10);
  drop(block, 10);
  if (errno != 5)
    abort();
}

static void run_fork(void) {
  void* inherited = get(1000);
  void* kept = get(2000);
  for (int i = 0; i < 2; ++i) {
    tell();
    const pid_t child = i == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      bytes = count = live = live_count = peak = temporary = 0;
      last = NULL;
      free(inherited);
      (void)get(300 + (size_t)i);
      drop(get(77), 77);
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        bytes = count = live = live_count = peak = temporary = 0;
        (void)get(5);
        tell();
        exit(0);
      }
      waitpid(grandchild, NULL, 0);
      tell();
      exit(0);
    }
    waitpid(child, NULL, 0);
  }
  const pid_t quick = vfork();
  if (quick == 0)
    _exit(0);
  waitpid(quick, NULL, 0);
  drop(inherited, 1000);
  drop(kept, 2000);
}

static void on_signal(int number) {
  (void)number;
  drop(get(40), 40);
}

static void run_signals(void) {
  static char other_stack[1 << 16];
  stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
  sigaltstack(&other, NULL);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, NULL);
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, NULL);
  for (int i = 0; i < 100; ++i) {
    raise(SIGUSR1);
    raise(SIGUSR2);
    drop(get(1), 1);
  }
}

static ucontext_t back, there;

static void on_other_stack(void) {
  for (int i = 0; i < 100; ++i) {
    drop(get(64), 64);
    swapcontext(&there, &back);
  }
}

static void run_coroutines(void) {
  const size_t size = 1 << 16;
  void* stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = size;
  there.uc_link = &back;
  makecontext(&there, on_other_stack, 0);
  for (int i = 0; i < 100; ++i) {
    swapcontext(&back, &there);
    drop(get(32), 32);
  }
  munmap(stack, size);
}

/* Each block but the last is freed after the next one was allocated. */
static void run_overlapping(void) {
  void* before = get(100);
  for (int i = 0; i < 100000; ++i) {
    void* next = get(100);
    drop(before, 100);
    before = next;
  }
}

static void run_deep(void) {
  for (int i = 0; i < 20; ++i) {
    drop(descend(20000, 7, 100), 100);
    drop(descend((unsigned)i, 7, 100), 100);
  }
}

static void run_plugin(void) {
  const char* path = getenv("HEAP_PLUGIN");
  for (int i = 0; i < 100; ++i) {
    void* library = dlopen(path, RTLD_NOW);
    void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(library, i % 2 ? "first" : "second");
    void* block = allocate(10);
    came(block, 10);
    drop(block, 10);
    dlclose(library);
  }
}

static void run_killed(void) {
  run_mixed();
  tell();
  kill(getpid(), SIGKILL);
}

static void run_exit(void) {
  (void)get(123);
  tell();
  _exit(7);
}

static void run_mmap(void) {
  void* block = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  came(block, 100000);
  /* Removed in four parts: the second from the middle, the third by another mapping. */
  munmap(block, 4096);
  munmap((char*)block + 12288, 4096);
  live -= 8192;
  void* over = mmap((char*)block + 4096, 8192, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  live -= 8192;
  came(over, 8192);
  went(block, 100000 - 16384);
  munmap((char*)block + 16384, 100000 - 16384);
  went(over, 8192);
  munmap(over, 8192);
  block = mmap(NULL, 40000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  came(block, 40000);
  /* A reservation replaces the block and is not memory; a mapped file is not, either. */
  went(block, 40000);
  mmap(block, 40000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  const int file = open("/proc/self/exe", O_RDONLY);
  if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED ||
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) == MAP_FAILED)
    abort();
  block = mmap(NULL, 30000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  came(block, 30000);
}

static const struct mode modes[] = {
    {"mixed", run_mixed},     {"threads", run_threads},        {"short_threads", run_short_threads},
    {"realloc", run_realloc}, {"failures", run_failures},      {"fork", run_fork},
    {"signals", run_signals}, {"coroutines", run_coroutines},  {"deep", run_deep},
    {"plugin", run_plugin},   {"killed", run_killed},          {"exit", run_exit},
    {"mmap", run_mmap},       {"overlapping", run_overlapping}};

int main(int argc, char** argv) {
  return run_mode(argc, argv, modes, sizeof modes / sizeof *modes);
}
