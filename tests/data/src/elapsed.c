// Passes its time in ways that it measures: one thread runs, two run, a thread sleeps, and a child
// runs while this waits.  Prints "NAME US" for each, on the monotonic clock.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void use_cpu(double wanted) {
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
  while (seconds(CLOCK_THREAD_CPUTIME_ID) - start < wanted)
    for (volatile int i = 0; i < 20000; ++i)
      ;
}

__attribute__((noinline)) static void run_alone(void) { use_cpu(0.4); }

static void* run_beside(void* unused) {
  use_cpu(0.4);
  return unused;
}

__attribute__((noinline)) static void run_two(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    pthread_create(&threads[i], 0, run_beside, 0);
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], 0);
}

/// Is woken before it has left its CPU, so that it stays there.
__attribute__((noinline)) static void try_to_sleep(void) {
  const struct timespec too_short = {0, 1};
  prctl(PR_SET_TIMERSLACK, 1);
  for (int i = 0; i < 20; ++i)
    clock_nanosleep(CLOCK_MONOTONIC, 0, &too_short, 0);
}

__attribute__((noinline)) static void take_a_nap(void) {
  const struct timespec nap = {0, 300000000};
  try_to_sleep();
  clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, 0);
}

/// A child borrows this process's memory, and ends late.
__attribute__((noinline)) static void lend_memory(void) {
  if (vfork() == 0) {
    usleep(100000);
    _exit(0);
  }
  wait(0);
}

__attribute__((noinline)) static void wait_for_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    use_cpu(0.3);
    _exit(0);
  }
  waitpid(child, 0, 0);
  lend_memory();
}

/// A child is stopped while it runs, and ended.
__attribute__((noinline)) static void stop_child(void) {
  const struct timespec stopped = {0, 200000000};
  const pid_t child = fork();
  if (child == 0)
    use_cpu(100);
  // The child may have to wait for a CPU first.
  clockid_t clock_of_child;
  clock_getcpuclockid(child, &clock_of_child);
  do
    use_cpu(0.02);
  while (seconds(clock_of_child) < 0.02);
  kill(child, SIGSTOP);
  waitpid(child, 0, WUNTRACED);
  clock_nanosleep(CLOCK_MONOTONIC, 0, &stopped, 0);
  kill(child, SIGCONT);
  kill(child, SIGKILL);
  waitpid(child, 0, 0);
}

/// A child is stopped while it sleeps, and sleeps on.
__attribute__((noinline)) static void stop_sleeper(void) {
  const pid_t child = fork();
  if (child == 0) {
    const struct timespec long_nap = {0, 500000000};
    nanosleep(&long_nap, 0);
    _exit(0);
  }
  usleep(20000);
  kill(child, SIGSTOP);
  waitpid(child, 0, WUNTRACED);
  kill(child, SIGCONT);
  waitpid(child, 0, 0);
}

/// Starts children that wait 10 ms each for the CPU, which this process keeps from them.
static void crowd_cpu(void) {
  const struct sched_param first = {.sched_priority = 1};
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(sched_getcpu(), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0 ||
      sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) != 0)
    _exit(1);
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    if (child == 0)
      _exit(0);
    use_cpu(0.01);
    waitpid(child, 0, 0);
  }
}

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {
    crowd_cpu();
    return 0;
  }
  static const struct {
    const char* name;
    void (*phase)(void);
  } kPhases[] = {{"alone", run_alone},      {"two", run_two},     {"nap", take_a_nap},
                 {"child", wait_for_child}, {"stop", stop_child}, {"sleeper", stop_sleeper}};
  for (unsigned i = 0; i < sizeof kPhases / sizeof *kPhases; ++i) {
    const double start = seconds(CLOCK_MONOTONIC);
    kPhases[i].phase();
    printf("%s %.0f\n", kPhases[i].name, (seconds(CLOCK_MONOTONIC) - start) * 1e6);
  }
  return 0;
}
