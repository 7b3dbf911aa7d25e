/* A program that profiles itself with sp_sigprof(3) where that is difficult.  It reports an error
 * and then ends with status 1.
 *
 *     self_edges plugin LIBRARY FILE   code that is loaded while it is profiled
 *     self_edges deep FILE             stacks that are deeper than their copies
 *     self_edges stacks FILE           stacks of coroutines and of signal handlers
 *     self_edges closed FILE           no standard descriptors
 *     self_edges unnoticed             a child whose fork runs no fork handlers
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stackpipe/sigprof.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

static uint64_t cpu_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

#define SPINNER(name)                                           \
  NOINLINE void name(void) {                                    \
    for (uint64_t until = cpu_us() + 500000; cpu_us() < until;) \
      for (int i = 0; i < 40000; ++i)                           \
        sink = sink + 1;                                        \
    sink = 1;                                                   \
  }
SPINNER(spin_deep)
SPINNER(spin_coroutine)
SPINNER(spin_alternate)
SPINNER(spin_closed)

static void require(int is_right, const char* what) {
  if (is_right)
    return;
  fprintf(stderr, "self_edges: %s\n", what);
  exit(1);
}

static void start(const char* path, uint32_t stack_bytes) {
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(fd >= 0, path);
  options.hz = 499;
  options.stack_bytes = stack_bytes;
  require(sp_sigprof_start(&options, fd) == SP_SIGPROF_OK, "not started");
  close(fd);
}

static sp_sigprof_counts stop(void) {
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  require(sp_sigprof_stop(&counts) == SP_SIGPROF_OK, "not stopped");
  return counts;
}

static int run_plugin(char** files) {
  void* library;
  void (*spin)(double);
  start(files[1], 0);
  spin_deep();
  library = dlopen(files[0], RTLD_NOW);
  require(library != NULL, "no library");
  *(void**)&spin = dlsym(library, "plugin_spin");
  spin(1);
  stop();
  return 0;
}

/* Starts and stops at the deepest call, because a tick may also interrupt the start and the stop.
 */
NOINLINE sp_sigprof_counts descend(int levels, const char* file) {
  volatile char frame[1000];
  sp_sigprof_counts counts;
  frame[0] = 1;
  if (levels > 0) {
    counts = descend(levels - 1, file);
  } else {
    start(file, 8192);
    spin_deep();
    counts = stop();
  }
  sink = (unsigned long)frame[0];
  return counts;
}
static int run_deep(char** files) {
  const sp_sigprof_counts counts = descend(50, files[0]);
  require(counts.samples > 3, "no samples");
  require(counts.cut_samples == counts.samples, "not all of them are cut");
  return 0;
}

static ucontext_t first, other;
static void coroutine(void) {
  spin_coroutine();
  swapcontext(&other, &first);
}
static void on_signal(int signal) {
  (void)signal;
  spin_alternate();
}
static int run_stacks(char** files) {
  static char room[65536];
  const size_t bytes = 65536;
  /* The page after the stack cannot be read. */
  char* stack =
      mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t alternate;
  struct sigaction action;
  require(stack != MAP_FAILED && mprotect(stack + bytes, 4096, PROT_NONE) == 0, "no stack");
  getcontext(&other);
  other.uc_stack.ss_sp = stack;
  other.uc_stack.ss_size = bytes;
  makecontext(&other, coroutine, 0);
  memset(&alternate, 0, sizeof alternate);
  alternate.ss_sp = room;
  alternate.ss_size = sizeof room;
  sigaltstack(&alternate, NULL);
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, NULL);
  start(files[0], 0);
  swapcontext(&first, &other);
  raise(SIGUSR1);
  stop();
  return 0;
}

static int run_closed(char** files) {
  start(files[0], 0);
  for (int fd = 0; fd < 3; ++fd)
    close(fd);
  spin_closed();
  return sp_sigprof_stop(NULL) == SP_SIGPROF_OK ? 0 : 1;
}

static int run_unnoticed(char** files) {
  int status = 1;
  pid_t child;
  (void)files;
  start("/dev/null", 0);
  child = _Fork();
  if (child == 0) {
    if (sp_sigprof_stop(NULL) != SP_SIGPROF_NOT_RUNNING)
      _exit(2);
    start("/dev/null", 0);
    stop();
    _exit(0);
  }
  waitpid(child, &status, 0);
  require(status == 0, "the child has failed");
  stop();
  return 0;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int files;
    int (*run)(char** files);
  } modes[] = {{"plugin", 2, run_plugin},
               {"deep", 1, run_deep},
               {"stacks", 1, run_stacks},
               {"closed", 1, run_closed},
               {"unnoticed", 0, run_unnoticed}};
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; ++i)
    if (strcmp(argv[1], modes[i].name) == 0 && argc == 2 + modes[i].files)
      return modes[i].run(argv + 2);
  fprintf(stderr, "usage: self_edges MODE [FILE...]\n");
  return 2;
}
