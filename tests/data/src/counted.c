// Does something a known number of times while the program that records it is stopped.
//
// usage: counted [free] calls|naps|blocks N | cpu MILLISECONDS
//
//   calls   calls getppid(2) N times in all
//   naps    waits for 20 us N times, below nap(); prints how often the kernel saw it wait
//   blocks  allocates 32 bytes N times, below block(), and frees them
//   cpu     uses this much CPU time; prints the CPU time of the whole program, in microseconds
//
// It stops its parent before and continues it afterwards; with "free" it does neither.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile long sink;
static void* volatile held;

NOINLINE void nap(void) {
  const struct timespec time = {0, 20000};
  nanosleep(&time, NULL);
  sink = 1;
}

NOINLINE void block(void) {
  held = malloc(32);
  free(held);
  sink = 2;
}

static long waits(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nvcsw;
}

static long cpu_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

/// Uses a stack of some kilobytes, so that only few copies of it fit into a ring.
NOINLINE static void spin(long milliseconds) {
  volatile char room[16384] = {1};
  while (cpu_us() < milliseconds * 1000)
    for (int i = 0; i < 100000; ++i)
      sink += room[i % 1000];
}

NOINLINE static void do_it(const char* what, long count) {
  if (strcmp(what, "calls") == 0)
    while (count-- > 0)
      syscall(SYS_getppid);
  else if (strcmp(what, "naps") == 0)
    while (count-- > 0)
      nap();
  else if (strcmp(what, "blocks") == 0)
    while (count-- > 0)
      block();
  else
    spin(count);
}

/// The state of a process, R, S, T and so on, from /proc/PID/stat.
static char state_of(pid_t pid) {
  char path[64], text[512] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE* file = fopen(path, "r");
  if (file == NULL)
    return '?';
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  const char* behind_name = strrchr(text, ')');
  return behind_name == NULL ? '?' : behind_name[2];
}

/// Continues a process and waits until it sleeps: then it has read all records, and there is room
/// for the records of our end.
static void let_go_on(pid_t pid, int waits_for_it) {
  const struct timespec look = {0, 10000000};
  kill(pid, SIGCONT);
  for (int asleep = 0; waits_for_it && asleep < 30; ++asleep) {
    nanosleep(&look, NULL);
    if (state_of(pid) != 'S')
      asleep = 0;
  }
}

int main(int argc, char** argv) {
  const int is_free = argc == 4 && strcmp(argv[1], "free") == 0;
  if (argc != 3 + is_free)
    return 2;
  const char* what = argv[1 + is_free];
  const pid_t parent = (pid_t)syscall(SYS_getppid);
  // this program has made one call already
  const long count = atol(argv[2 + is_free]) - (strcmp(what, "calls") == 0);
  if (!is_free)
    kill(parent, SIGSTOP);
  const long before = waits();
  do_it(what, count);
  const long after = waits();
  if (!is_free)
    let_go_on(parent, strcmp(what, "calls") == 0);
  if (strcmp(what, "naps") == 0)
    printf("%ld\n", after - before);
  else if (strcmp(what, "cpu") == 0)
    printf("%ld\n", cpu_us());
  return 0;
}
