// A program for tests of offcpu: its threads wait in known places for known times.
//
//   waits CASE...    runs the cases one after the other; each takes about a second
//
// Each case waits in a function of its own, below main() or below its thread's first function.  It
// prints "CASE MICROSECONDS" on standard output: how long it waited, by the clock that offcpu
// reads.
// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#define KEEP __attribute__((noinline, noclone))

namespace {

constexpr long kWaitNs = 40'000'000;
constexpr int kWaits = 10;

/// A write to it keeps the call before from being the last thing that a function does.
volatile long after = 0;

long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void pause_ns(long length_ns) {
  timespec left{0, length_ns};
  while (nanosleep(&left, &left) != 0) {
  }
}

void say(const char* name, long total_ns) {
  printf("%s %ld\n", name, total_ns / 1000);
  fflush(stdout);
}

/// Returns how long a wait took.
template <typename Wait>
long timed(Wait wait) {
  const long began = now_ns();
  wait();
  return now_ns() - began;
}

}  // namespace

// Not in the unnamed namespace, because tests search for their names.

KEEP void wait_in_nanosleep() {
  pause_ns(kWaitNs);
  after = after + 1;
}

KEEP void wait_in_read(int fd) {
  char byte = 0;
  after = after + read(fd, &byte, 1);
}

KEEP void wait_in_poll(int fd) {
  pollfd polled{fd, POLLIN, 0};
  after = after + poll(&polled, 1, static_cast<int>(kWaitNs / 1'000'000));
}

KEEP void wait_for_mutex(pthread_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
  after = after + 1;
  pthread_mutex_unlock(mutex);
}

KEEP void wait_for_condition(pthread_mutex_t* mutex, pthread_cond_t* condition, const int* turn) {
  pthread_mutex_lock(mutex);
  while (*turn == 0)
    pthread_cond_wait(condition, mutex);
  after = after + 1;
  pthread_mutex_unlock(mutex);
}

/// Waits forever below `frames` frames of a kibibyte each, all of it written.
KEEP void wait_deep(int frames, int fd) {
  volatile char frame[1024];
  for (volatile char& byte : frame)
    byte = 1;
  if (frames > 0)
    wait_deep(frames - 1, fd);
  else
    wait_in_read(fd);
  after = after + frame[after & 1023];
}

/// Waits forever below pages of the stack that were never touched.
KEEP void wait_below_hole(int fd) {
  volatile char hole[256 * 1024];
  hole[sizeof hole - 1] = 1;
  wait_deep(4, fd);
  after = after + hole[sizeof hole - 1];
}

namespace {

struct Shared {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_barrier_t barrier{};
  int turn = 0;
  int pipe[2] = {-1, -1};
};

KEEP void nanosleep_case() {
  long total = 0;
  for (int i = 0; i < kWaits; ++i)
    total += timed(wait_in_nanosleep);
  say("nanosleep", total);
}

KEEP void poll_case() {
  Shared shared;
  if (pipe(shared.pipe) != 0)
    abort();
  long total = 0;
  for (int i = 0; i < kWaits; ++i)
    total += timed([&] { wait_in_poll(shared.pipe[0]); });
  say("poll", total);
}

void* write_slowly(void* argument) {
  const auto& shared = *static_cast<Shared*>(argument);
  for (int i = 0; i < kWaits; ++i) {
    pause_ns(kWaitNs);
    if (write(shared.pipe[1], "x", 1) != 1)
      abort();
  }
  return nullptr;
}

KEEP void read_case() {
  Shared shared;
  pthread_t other{};
  if (pipe(shared.pipe) != 0 || pthread_create(&other, nullptr, write_slowly, &shared) != 0)
    abort();
  long total = 0;
  for (int i = 0; i < kWaits; ++i)
    total += timed([&] { wait_in_read(shared.pipe[0]); });
  say("read", total);
  pthread_join(other, nullptr);
}

void* hold_mutex(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  for (int i = 0; i < kWaits; ++i) {
    pthread_mutex_lock(&shared.mutex);
    pthread_barrier_wait(&shared.barrier);
    pause_ns(kWaitNs);
    pthread_mutex_unlock(&shared.mutex);
    pthread_barrier_wait(&shared.barrier);
  }
  return nullptr;
}

KEEP void mutex_case() {
  Shared shared;
  pthread_barrier_init(&shared.barrier, nullptr, 2);
  pthread_t other{};
  if (pthread_create(&other, nullptr, hold_mutex, &shared) != 0)
    abort();
  long total = 0;
  for (int i = 0; i < kWaits; ++i) {
    pthread_barrier_wait(&shared.barrier);
    total += timed([&] { wait_for_mutex(&shared.mutex); });
    pthread_barrier_wait(&shared.barrier);
  }
  say("mutex", total);
  pthread_join(other, nullptr);
}

void* signal_condition(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  for (int i = 0; i < kWaits; ++i) {
    pthread_barrier_wait(&shared.barrier);
    pause_ns(kWaitNs);
    pthread_mutex_lock(&shared.mutex);
    shared.turn = 1;
    pthread_cond_signal(&shared.condition);
    pthread_mutex_unlock(&shared.mutex);
  }
  return nullptr;
}

KEEP void condition_case() {
  Shared shared;
  pthread_barrier_init(&shared.barrier, nullptr, 2);
  pthread_t other{};
  if (pthread_create(&other, nullptr, signal_condition, &shared) != 0)
    abort();
  long total = 0;
  for (int i = 0; i < kWaits; ++i) {
    shared.turn = 0;
    pthread_barrier_wait(&shared.barrier);
    total += timed([&] { wait_for_condition(&shared.mutex, &shared.condition, &shared.turn); });
  }
  say("condition", total);
  pthread_join(other, nullptr);
}

/// Waits until a process sleeps.  A new process may have to wait for a CPU first.
void wait_until_it_sleeps(pid_t pid) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  for (char state = '?'; state != 'S'; pause_ns(1'000'000)) {
    FILE* stat = fopen(path, "r");
    if (stat == nullptr || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
      abort();
    fclose(stat);
  }
}

/// A child waits forever, and is killed while it waits.
KEEP void killed_case() {
  Shared shared;
  if (pipe(shared.pipe) != 0)
    abort();
  const pid_t child = fork();
  if (child == 0) {
    wait_in_read(shared.pipe[0]);
    _exit(0);
  }
  wait_until_it_sleeps(child);
  const long began = now_ns();
  pause_ns(kWaits * kWaitNs);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  say("killed", now_ns() - began);
}

/// Two processes wake each other as fast as they can.
KEEP void pingpong_case() {
  constexpr int kRounds = 50'000;
  int there[2] = {-1, -1}, back[2] = {-1, -1};
  if (pipe(there) != 0 || pipe(back) != 0)
    abort();
  const long began = now_ns();
  if (fork() == 0) {
    close(there[1]);
    char byte = 0;
    while (read(there[0], &byte, 1) == 1)
      after = after + write(back[1], &byte, 1);
    _exit(0);
  }
  for (int i = 0; i < kRounds; ++i) {
    after = after + write(there[1], "x", 1);
    wait_in_read(back[0]);
  }
  close(there[1]);
  while (wait(nullptr) > 0) {
  }
  say("pingpong", now_ns() - began);
  long switches = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    switches += usage.ru_nvcsw + usage.ru_nivcsw;
  }
  printf("switches %ld\n", switches);
}

/// Waits below a library whose code was not mapped before.
KEEP void dlopen_case() {
  void* library = dlopen(getenv("WAITS_LIBRARY"), RTLD_NOW);
  auto* call = reinterpret_cast<void (*)(void (*)())>(
      library != nullptr ? dlsym(library, "call_from_library") : nullptr);
  if (call == nullptr)
    abort();
  long total = 0;
  for (int i = 0; i < kWaits; ++i)
    total += timed([&] { call(wait_in_nanosleep); });
  say("dlopen", total);
}

/// The program's first wait is also its last.
KEEP void deep_case() {
  Shared shared;
  if (pipe(shared.pipe) != 0)
    abort();
  wait_deep(64, shared.pipe[0]);
}

KEEP void hole_case() {
  Shared shared;
  if (pipe(shared.pipe) != 0)
    abort();
  wait_below_hole(shared.pipe[0]);
}

/// A thread that is not the first executes another program.
void* begin_program(void* /*argument*/) {
  execl("/proc/self/exe", "waits-exec", "nanosleep", static_cast<char*>(nullptr));
  abort();
}

KEEP void exec_case() {
  pthread_t other{};
  if (pthread_create(&other, nullptr, begin_program, nullptr) != 0)
    abort();
  pthread_join(other, nullptr);
}

/// Starts many programs that end almost at once.  Until then, each only yields its CPU.
KEEP void brief_case() {
  constexpr int kPrograms = 300, kAtOnce = 6;
  int alive = 0;
  for (int i = 0; i < kPrograms; ++i) {
    if (fork() == 0) {
      execl("/proc/self/exe", "waits-brief", "yield", static_cast<char*>(nullptr));
      abort();
    }
    if (++alive > kAtOnce && wait(nullptr) > 0)
      --alive;
  }
  while (wait(nullptr) > 0) {
  }
}

KEEP void yield_case() {
  constexpr int kTimes = 200;
  for (int i = 0; i < kTimes; ++i)
    sched_yield();
}

struct Case {
  const char* name;
  void (*run)();
};

constexpr Case kCases[] = {
    {"nanosleep", nanosleep_case}, {"poll", poll_case},           {"read", read_case},
    {"mutex", mutex_case},         {"condition", condition_case}, {"killed", killed_case},
    {"pingpong", pingpong_case},   {"dlopen", dlopen_case},       {"exec", exec_case},
    {"deep", deep_case},           {"hole", hole_case},           {"brief", brief_case},
    {"yield", yield_case},
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    for (const Case& known : kCases)
      if (strcmp(known.name, argv[i]) == 0)
        known.run();
  return 0;
}
