// Threads that wait, each in its own way, and say so: "ready" on standard output.
//
//     blocked kinds       one thread for each way, until the program is killed
//     blocked sleepers N  N threads that sleep; the first thread ends
//     blocked memory MS   one thread maps memory while another one holds up all changes of mappings
//
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static volatile char* missing;
static volatile int is_over;
static const struct timespec kLong = {1000, 0};

static void* wait_for_lock(void* unused) {
  pthread_mutex_lock(&taken);
  return unused;
}

static void* wait_for_pipe(void* unused) {
  char byte;
  return read(ends[0], &byte, 1) == 1 ? unused : 0;
}

static void* wait_in_poll(void* unused) {
  struct pollfd input = {ends[0], POLLIN, 0};
  poll(&input, 1, -1);
  return unused;
}

static void* poll_nothing(void* unused) {
  poll(0, 0, -1);
  return unused;
}

static void* select_nothing(void* unused) {
  struct timeval limit = {1000, 0};
  select(0, 0, 0, 0, &limit);
  return unused;
}

static void* sleep_long(void* unused) {
  nanosleep(&kLong, 0);
  return unused;
}

static void* wait_for_child(void* unused) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pause();
  }
  waitpid(child, 0, 0);
  return unused;
}

static void* wait_for_page(void* unused) { return *missing ? unused : 0; }

/// Memory that nobody provides.
static void make_missing_page(void) {
  const long bytes = sysconf(_SC_PAGESIZE);
  missing = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int fd = (int)syscall(SYS_userfaultfd, 0);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register registered = {.range = {(unsigned long)missing, bytes},
                                       .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &registered))
    exit(77);
}

static pthread_t start(void* (*way)(void*)) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  if (pthread_create(&thread, &small, way, 0))
    exit(1);
  return thread;
}

static void report_ready(void) {
  puts("ready");
  fflush(stdout);
}

/// Waits until all threads but the first are in a system call or a fault, for which they sleep.
static void await_sleepers(int count) {
  char path[64], state;
  for (int i = 0; i < count; ++i) {
    const int tid = getpid() + 1 + i;
    do {
      snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
      FILE* file = fopen(path, "r");
      if (!file)
        break;  // of another process
      if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'S';
      fclose(file);
    } while (state == 'R' && usleep(1000) == 0);
  }
}

static void* hold_up_mappings(void* unused) {
  enum { kBytes = 64 << 20 };
  while (!is_over)
    munmap(
        mmap(0, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
        kBytes);
  return unused;
}

static void* change_mappings(void* unused) {
  while (!is_over)
    munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
  return unused;
}

int main(int argc, char** argv) {
  if (argc == 3 && !strcmp(argv[1], "memory")) {
    const pthread_t threads[] = {start(hold_up_mappings), start(change_mappings)};
    usleep(1000 * atoi(argv[2]));
    is_over = 1;
    for (int i = 0; i < 2; ++i)
      pthread_join(threads[i], 0);
    return 0;
  }
  if (argc == 3 && !strcmp(argv[1], "sleepers")) {
    const int count = atoi(argv[2]);
    for (int i = 0; i < count; ++i)
      start(sleep_long);
    await_sleepers(count);
    report_ready();
    pthread_exit(0);
  }
  void* (*const kWays[])(void*) = {wait_for_lock,  wait_for_pipe, wait_in_poll,   poll_nothing,
                                   select_nothing, sleep_long,    wait_for_child, wait_for_page};
  if (pipe(ends))
    return 1;
  make_missing_page();
  pthread_mutex_lock(&taken);
  const int count = sizeof kWays / sizeof *kWays;
  for (int i = 0; i < count; ++i)
    start(kWays[i]);
  await_sleepers(count + 1);
  report_ready();
  sleep_long(0);
}
