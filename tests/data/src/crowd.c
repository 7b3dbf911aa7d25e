// Has very many threads, mappings, or programs.
//
// usage: crowd threads N SECONDS | turns N 0 | mappings N SECONDS | execs again END COUNT
//
//   threads   starts N threads, named tN.  The first four run below busy(), the others wait.
//   turns     starts N threads one after the other; each ends at once
//   mappings  makes N mappings of one page, which the kernel cannot join; then runs below busy()
//   execs     executes $CROWD_A and $CROWD_B, copies of this program, in turn.  Each runs below
//             busy_a() or busy_b() for a short while.  Ends when CLOCK_MONOTONIC reaches END, in
//             seconds; prints COUNT plus the number of executions.
//
// All others print how many threads or mappings there could be.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile long sink;
static double until;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

NOINLINE void busy(void) {
  while (now() < until)
    for (int i = 0; i < 200000; ++i)
      sink = i;
}

NOINLINE void busy_a(void) {
  for (int i = 0; i < 100000; ++i)
    sink = i;
}
NOINLINE void busy_b(void) {
  for (int i = 0; i < 100000; ++i)
    sink = -i;
}

static int go[2];

static void* thread(void* number) {
  char name[16];
  snprintf(name, sizeof name, "t%ld", (long)number);
  pthread_setname_np(pthread_self(), name);
  char byte;
  if ((long)number < 4)
    busy();
  else if (read(go[0], &byte, 1) != 0)  // until the program ends
    abort();
  return NULL;
}

static void threads(long count) {
  pthread_attr_t small;
  pthread_t last;
  long made = 0;
  if (pipe(go) != 0)
    abort();
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 32768);
  while (made < count && pthread_create(&last, &small, thread, (void*)made) == 0)
    ++made;
  printf("%ld\n", made);
  fflush(stdout);
  while (now() < until)
    usleep(10000);
  _exit(0);
}

static void* ends(void* nothing) { return nothing; }

static void turns(long count) {
  pthread_t one;
  long made = 0;
  while (made < count && pthread_create(&one, NULL, ends, NULL) == 0 &&
         pthread_join(one, NULL) == 0)
    ++made;
  printf("%ld\n", made);
}

static void mappings(long count) {
  const size_t page = 4096;
  for (long i = 0; i < count; ++i)
    if (mmap(NULL, page, i % 2 == 0 ? PROT_READ : PROT_READ | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
      count = i;
      break;
    }
  printf("%ld\n", count);
  fflush(stdout);
  busy();
}

/// usage: NAME execs again END COUNT
static void execs(char** argv) {
  char end[32], count[32];
  const int is_a = strstr(argv[0], "crowd-a") != NULL;
  const long made = atol(argv[4]);
  until = atof(argv[3]);
  if (is_a)
    busy_a();
  else
    busy_b();
  if (now() >= until) {
    printf("%ld\n", made);
    return;
  }
  snprintf(end, sizeof end, "%.3f", until);
  snprintf(count, sizeof count, "%ld", made + 1);
  // The kernel names a program after its file, so each program has a file of its own.
  execl(is_a ? getenv("CROWD_B") : getenv("CROWD_A"), is_a ? "crowd-b" : "crowd-a", "execs",
        "again", end, count, (char*)NULL);
  abort();
}

int main(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[1], "execs") == 0) {
    execs(argv);
  } else if (argc == 4) {
    until = now() + atof(argv[3]);
    if (strcmp(argv[1], "threads") == 0)
      threads(atol(argv[2]));
    else if (strcmp(argv[1], "turns") == 0)
      turns(atol(argv[2]));
    else
      mappings(atol(argv[2]));
  }
  return 0;
}
