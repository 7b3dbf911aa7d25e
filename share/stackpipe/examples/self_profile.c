/* This program profiles itself and prints its own folded stacks, each with the time, in
 * microseconds, that the program has spent in it.
 *
 *     cc self_profile.c $(pkg-config --cflags --libs stackpipe-sigprof) -o self_profile
 *     ./self_profile [SECONDS]
 *
 * The program starts pe-symbolize and stackfold, without a shell, and sends the stream through
 * them.  Both must be in the PATH.  Half of the time is spent in fifty(), 30 % in thirty(), 20 % in
 * twenty().  SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stackpipe/sigprof.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static volatile unsigned long sink; /* compilers cannot optimize writes to it away */

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A macro, so that samples are in the function itself. */
#define SPIN_FOR(seconds)                                                \
  for (double until = cpu_seconds() + (seconds); cpu_seconds() < until;) \
    for (int i = 0; i < 40000; ++i)                                      \
  sink = sink + 1

/* Each function ends with a statement after its loop, so that no call becomes a jump. */
#define NOINLINE __attribute__((noinline))
NOINLINE void fifty(void) {
  SPIN_FOR(0.010);
  sink = 1;
}
NOINLINE void thirty(void) {
  SPIN_FOR(0.006);
  sink = 2;
}
NOINLINE void twenty(void) {
  SPIN_FOR(0.004);
  sink = 3;
}

NOINLINE void work(double seconds) {
  const double until = cpu_seconds() + seconds;
  while (cpu_seconds() < until) {
    fifty();
    thirty();
    twenty();
  }
  sink = 4;
}

/* Starts a filter that reads from `in`, and writes to `out` or, if that is -1, to our standard
 * output.  Returns the filter's process id, or -1. */
static pid_t start_filter(const char* name, int in, int out) {
  char* arguments[] = {(char*)name, (char*)"-q", NULL};
  pid_t pid = -1;
  int error;
  posix_spawn_file_actions_t actions;
  if (strcmp(name, "stackfold") == 0)
    arguments[1] = NULL;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  if (out >= 0)
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  error = posix_spawnp(&pid, name, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    fprintf(stderr, "self_profile: %s: %s\n", name, strerror(error));
    return -1;
  }
  return pid;
}

static int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return 0;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 2;
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  int stream[2], named[2], result;
  pid_t symbolizer, folder;

  if (pipe2(stream, O_CLOEXEC) != 0 || pipe2(named, O_CLOEXEC) != 0) {
    perror("self_profile: pipe");
    return 1;
  }
  symbolizer = start_filter("pe-symbolize", stream[0], named[1]);
  folder = symbolizer < 0 ? -1 : start_filter("stackfold", named[0], -1);
  /* Close our copies, so that each filter sees the end of its input. */
  close(stream[0]);
  close(named[0]);
  close(named[1]);
  if (folder < 0)
    return 1;

  options.hz = 499;
  result = sp_sigprof_start(&options, stream[1]);
  if (result != SP_SIGPROF_OK) {
    fprintf(stderr, "self_profile: not profiled: %s\n", sp_sigprof_error(result));
    return 1;
  }
  close(stream[1]); /* the library has its own duplicate */

  work(seconds);

  result = sp_sigprof_stop(&counts);
  if (result != SP_SIGPROF_OK)
    fprintf(stderr, "self_profile: incomplete: %s\n", sp_sigprof_error(result));
  fprintf(stderr, "self_profile: %llu samples, %llu lost\n", (unsigned long long)counts.samples,
          (unsigned long long)counts.lost_samples);
  if (!wait_for(symbolizer) || !wait_for(folder))
    return 1;
  return result == SP_SIGPROF_OK ? 0 : 1;
}
