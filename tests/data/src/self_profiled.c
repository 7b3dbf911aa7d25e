/* A program that profiles itself with sp_sigprof(3) and checks the results.  It reports each error
 * and then ends with status 1.
 *
 *     self_profiled shares|threads|chosen|blocked|errno FILE
 *     self_profiled twice|fork FILE FILE
 *     self_profiled own-handler|taken-over|closed|stalled|storm|wall|exec
 *     self_profiled dlopen LIBRARY FILE
 *
 * Times are CPU times of threads, so a busy machine changes nothing.
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stackpipe/sigprof.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;
static volatile int handled;
static int failed;

static uint64_t cpu_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

#define SPIN_FOR(us)                                        \
  for (uint64_t until = cpu_us() + (us); cpu_us() < until;) \
    for (int i = 0; i < 40000; ++i)                         \
  sink = sink + 1

#define SPINNER(name)               \
  NOINLINE void name(unsigned ms) { \
    SPIN_FOR(ms * 1000u);           \
    sink = 1;                       \
  }
SPINNER(fifty)
SPINNER(thirty)
SPINNER(twenty)
SPINNER(spin_early)
SPINNER(spin_late)
SPINNER(spin_first)
SPINNER(spin_other)
SPINNER(spin_added)
SPINNER(spin_again)
SPINNER(spin_child)
SPINNER(spin_blocked)

NOINLINE void work(unsigned rounds) {
  while (rounds-- > 0) {
    fifty(10);
    thirty(6);
    twenty(4);
  }
  sink = 2;
}

static void check(int is_right, const char* what) {
  if (is_right)
    return;
  fprintf(stderr, "self_profiled: %s\n", what);
  failed = 1;
}

static void expect(int wanted, int got, const char* what) {
  if (wanted == got)
    return;
  fprintf(stderr, "self_profiled: %s: %s\n", what, sp_sigprof_error(got));
  failed = 1;
}

static int create(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    perror(path);
    exit(1);
  }
  return fd;
}

static void start(const sp_sigprof_options* options, int fd) {
  expect(SP_SIGPROF_OK, sp_sigprof_start(options, fd), "start");
  close(fd);
}

static sp_sigprof_counts stop(int wanted) {
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  expect(wanted, sp_sigprof_stop(&counts), "stop");
  return counts;
}

static sp_sigprof_options often(void) {
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  options.hz = 499;
  return options;
}

static sighandler_t action_now(void) {
  struct sigaction action;
  sigaction(SIGPROF, NULL, &action);
  return action.sa_handler;
}

static void report(const sp_sigprof_counts* counts) {
  printf("samples %u\nsampled_ms %u\nlost %u\ncpu_ms %u\n", (unsigned)counts->samples,
         (unsigned)(counts->sampled_ns / 1000000), (unsigned)counts->lost_samples,
         (unsigned)(counts->cpu_ns / 1000000));
}

static int run_shares(char** files) {
  sp_sigprof_options options = often();
  sp_sigprof_counts counts;
  start(&options, create(files[0]));
  work(150);
  counts = stop(SP_SIGPROF_OK);
  report(&counts);
  return failed;
}

/* One thread from before the start, one that starts later, and the first: 30, 50, 20 %. */
static pthread_barrier_t barrier;
static void* run_early(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "early");
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  spin_early(900);
  return NULL;
}
static void* run_late(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "late");
  spin_late(1500);
  return NULL;
}
static int run_threads(char** files) {
  pthread_t early, late;
  sp_sigprof_options options = often();
  sp_sigprof_counts counts;
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&early, NULL, run_early, NULL);
  pthread_barrier_wait(&barrier);
  start(&options, create(files[0]));
  pthread_barrier_wait(&barrier);
  pthread_create(&late, NULL, run_late, NULL);
  spin_first(600);
  pthread_join(early, NULL);
  pthread_join(late, NULL);
  counts = stop(SP_SIGPROF_OK);
  report(&counts);
  check(counts.threads == 3, "not three threads");
  return failed;
}

static void* run_other(void* unused) {
  (void)unused;
  spin_other(500);
  return NULL;
}
static void* run_added(void* unused) {
  (void)unused;
  expect(SP_SIGPROF_OK, sp_sigprof_add_this_thread(), "add");
  expect(SP_SIGPROF_OK, sp_sigprof_add_this_thread(), "add again");
  spin_added(500);
  return NULL;
}
static int run_chosen(char** files) {
  pthread_t other, added;
  sp_sigprof_options options = often();
  sp_sigprof_counts counts;
  options.threads = SP_SIGPROF_THIS_THREAD;
  expect(SP_SIGPROF_NOT_RUNNING, sp_sigprof_add_this_thread(), "add before the start");
  start(&options, create(files[0]));
  pthread_create(&other, NULL, run_other, NULL);
  pthread_create(&added, NULL, run_added, NULL);
  spin_first(500);
  pthread_join(other, NULL);
  pthread_join(added, NULL);
  counts = stop(SP_SIGPROF_OK);
  report(&counts);
  check(counts.threads == 2, "not two threads");
  return failed;
}

static void* run_blocked(void* unused) {
  sigset_t all;
  (void)unused;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  pthread_barrier_wait(&barrier);
  spin_blocked(300);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return NULL;
}
static int run_blocking(char** files) {
  pthread_t thread;
  sp_sigprof_options options = often();
  sp_sigprof_counts counts;
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, run_blocked, NULL);
  start(&options, create(files[0]));
  pthread_barrier_wait(&barrier);
  spin_first(300);
  pthread_barrier_wait(&barrier);
  counts = stop(SP_SIGPROF_OK);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  check(counts.threads_blocking == 1, "a thread that blocks SIGPROF is not counted");
  report(&counts);
  return failed;
}

/* Signals arrive all the time, and errno does not change. */
static int run_errno(char** files) {
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  options.hz = 1000;
  options.clock = SP_SIGPROF_WALL;
  start(&options, create(files[0]));
  for (int round = 0; round < 300; ++round) {
    errno = 4242;
    fifty(1);
    if (errno != 4242)
      break;
  }
  check(errno == 4242, "errno was changed");
  check(stop(SP_SIGPROF_OK).samples > 100, "there were hardly samples");
  return failed;
}

static int run_twice(char** files) {
  sp_sigprof_options options = often();
  check(action_now() == SIG_DFL, "SIGPROF is in use");
  expect(SP_SIGPROF_NOT_RUNNING, sp_sigprof_stop(NULL), "stop before the start");
  start(&options, create(files[0]));
  expect(SP_SIGPROF_RUNNING, sp_sigprof_start(&options, 1), "start again");
  spin_first(500);
  check(stop(SP_SIGPROF_OK).samples > 3, "no samples");
  check(action_now() == SIG_DFL, "SIGPROF is not as it was");
  for (int round = 0; round < 50; ++round) {
    start(NULL, create("/dev/null"));
    spin_first(1);
    stop(SP_SIGPROF_OK);
  }
  signal(SIGPROF, SIG_IGN);
  start(&options, create(files[1]));
  raise(SIGPROF); /* not from the profiler: ignored as before */
  spin_again(500);
  check(stop(SP_SIGPROF_OK).samples > 3, "no samples the second time");
  check(action_now() == SIG_IGN, "SIGPROF is not ignored as it was");
  return failed;
}

static void on_signal(int signal) {
  (void)signal;
  handled = 1;
}

static int run_own_handler(char** files) {
  (void)files;
  signal(SIGPROF, on_signal);
  expect(SP_SIGPROF_SIGNAL_TAKEN, sp_sigprof_start(NULL, 1), "start");
  raise(SIGPROF);
  check(handled && action_now() == on_signal, "the program's handler is not what it was");
  return failed;
}

static int run_taken_over(char** files) {
  sp_sigprof_counts counts;
  sp_sigprof_options options = often();
  (void)files;
  start(&options, create("/dev/null"));
  spin_first(300);
  signal(SIGPROF, on_signal);
  spin_other(300);
  counts = stop(SP_SIGPROF_SIGNAL_TAKEN);
  check(counts.samples > 3, "what was before is missing");
  check(action_now() == on_signal, "the program's handler is gone");
  return failed;
}

/* The child is not profiled, keeps no descriptor open, and can profile itself. */
static int run_fork(char** files) {
  int stream[2], go[2], status = 0;
  char byte;
  pid_t child;
  sp_sigprof_options options = often();
  if (pipe2(stream, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0)
    return 1;
  start(&options, stream[1]);
  child = fork();
  if (child == 0) {
    close(go[1]);
    check(action_now() == SIG_DFL, "SIGPROF of the child is not as before");
    expect(SP_SIGPROF_NOT_RUNNING, sp_sigprof_stop(NULL), "stop in the child");
    check(read(go[0], &byte, 1) == 0, "the parent says something");
    start(&options, create(files[1]));
    spin_child(500);
    check(stop(SP_SIGPROF_OK).samples > 3, "no samples of the child");
    _exit(failed);
  }
  {
    const int out = create(files[0]);
    static char bytes[65536];
    ssize_t n;
    pthread_t stopper;
    spin_first(300); /* the samples fit into the pipe, or wait in the rings */
    /* The reader sees the end of the stream while the child still exists. */
    pthread_create(&stopper, NULL, (void* (*)(void*))(void (*)(void))sp_sigprof_stop, NULL);
    while ((n = read(stream[0], bytes, sizeof bytes)) > 0)
      if (write(out, bytes, (size_t)n) != n)
        return 1;
    pthread_join(stopper, NULL);
  }
  close(go[1]);
  waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child has failed");
  return failed;
}

static int run_closed(char** files) {
  int stream[2];
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  sp_sigprof_options options = often();
  (void)files;
  if (pipe2(stream, O_CLOEXEC) != 0)
    return 1;
  start(&options, stream[1]);
  spin_first(200);
  close(stream[0]);
  spin_first(300);
  expect(SP_SIGPROF_WRITE_FAILED, sp_sigprof_stop(&counts), "stop");
  check(errno == EPIPE, "errno is not EPIPE");
  check(counts.lost_samples > 0, "nothing is counted as lost");
  return failed;
}

/* Nobody reads the pipe: the program continues, loses samples, and ends. */
static int run_stalled(char** files) {
  int stream[2];
  struct timespec before, after;
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  sp_sigprof_options options = often();
  (void)files;
  if (pipe2(stream, O_CLOEXEC) != 0)
    return 1;
  options.stop_ms = 100;
  options.ring_bytes = 65536;
  start(&options, stream[1]);
  spin_first(1500);
  clock_gettime(CLOCK_MONOTONIC, &before);
  expect(SP_SIGPROF_READER_SLOW, sp_sigprof_stop(&counts), "stop");
  clock_gettime(CLOCK_MONOTONIC, &after);
  check(counts.lost_samples > 0, "nothing is counted as lost");
  check(counts.sampled_ns + counts.lost_ns > 1000000000, "not all that is lost is counted");
  check(after.tv_sec - before.tv_sec < 60, "stopping took a minute");
  return failed;
}

/* Threads start and end while the profiler is started and stopped. */
static volatile int is_over;
static void* run_short(void* unused) {
  (void)unused;
  sp_sigprof_add_this_thread();
  fifty(1);
  return NULL;
}
static void* run_breeder(void* unused) {
  (void)unused;
  while (!is_over) {
    pthread_t threads[8];
    for (int i = 0; i < 8; ++i)
      pthread_create(&threads[i], NULL, run_short, NULL);
    for (int i = 0; i < 8; ++i)
      pthread_join(threads[i], NULL);
  }
  return NULL;
}
static int run_storm(char** files) {
  pthread_t breeders[2];
  uint64_t samples = 0;
  (void)files;
  for (int i = 0; i < 2; ++i)
    pthread_create(&breeders[i], NULL, run_breeder, NULL);
  for (int round = 0; round < 30; ++round) {
    sp_sigprof_options options = SP_SIGPROF_OPTIONS;
    options.hz = 1000;
    options.clock = round % 2 ? SP_SIGPROF_WALL : SP_SIGPROF_CPU;
    start(&options, create("/dev/null"));
    spin_first(20);
    if (round % 5 == 0) {
      int status = 1;
      const pid_t child = fork();
      if (child == 0)
        _exit(0);
      waitpid(child, &status, 0);
      check(status == 0, "a child has failed");
    }
    samples += stop(SP_SIGPROF_OK).samples;
  }
  is_over = 1;
  for (int i = 0; i < 2; ++i)
    pthread_join(breeders[i], NULL);
  check(samples > 30, "hardly a sample");
  return failed;
}

/* The profiler samples waiting threads, too; an interrupted wait can continue. */
static int run_wall(char** files) {
  struct timespec left = {1, 0};
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  sp_sigprof_counts counts;
  (void)files;
  options.clock = SP_SIGPROF_WALL;
  start(&options, create("/dev/null"));
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  counts = stop(SP_SIGPROF_OK);
  check(counts.samples > 5, "no samples of a sleep");
  return failed;
}

/* A pending signal must not end the program that is executed. */
static int run_exec(char** files) {
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  (void)files;
  options.hz = 1000;
  options.clock = SP_SIGPROF_WALL;
  start(&options, create("/dev/null"));
  spin_first(50);
  execl("/bin/sleep", "sleep", "0.1", (char*)NULL);
  return 1;
}

typedef int (*start_function)(const sp_sigprof_options*, int);
typedef int (*stop_function)(sp_sigprof_counts*);
static int run_dlopen(char** files) {
  for (int round = 0; round < 3; ++round) {
    sp_sigprof_options options = often();
    void* library = dlopen(files[0], RTLD_NOW | RTLD_LOCAL);
    start_function begin;
    stop_function end;
    int fd;
    if (library == NULL) {
      fprintf(stderr, "self_profiled: %s\n", dlerror());
      return 1;
    }
    *(void**)&begin = dlsym(library, "sp_sigprof_start");
    *(void**)&end = dlsym(library, "sp_sigprof_stop");
    fd = create(files[1]);
    check(begin(&options, fd) == SP_SIGPROF_OK, "not started");
    close(fd);
    spin_first(300);
    if (round == 2)
      dlclose(library); /* while the profiler runs */
    check(end(NULL) == SP_SIGPROF_OK, "not stopped");
    if (round != 2)
      dlclose(library);
  }
  return failed;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int files;
    int (*run)(char** files);
  } modes[] = {{"shares", 1, run_shares},
               {"threads", 1, run_threads},
               {"chosen", 1, run_chosen},
               {"blocked", 1, run_blocking},
               {"errno", 1, run_errno},
               {"twice", 2, run_twice},
               {"fork", 2, run_fork},
               {"own-handler", 0, run_own_handler},
               {"taken-over", 0, run_taken_over},
               {"closed", 0, run_closed},
               {"stalled", 0, run_stalled},
               {"storm", 0, run_storm},
               {"wall", 0, run_wall},
               {"exec", 0, run_exec},
               {"dlopen", 2, run_dlopen}};
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; ++i)
    if (strcmp(argv[1], modes[i].name) == 0 && argc == 2 + modes[i].files)
      return modes[i].run(argv + 2);
  fprintf(stderr, "usage: self_profiled MODE [FILE...]\n");
  return 2;
}
