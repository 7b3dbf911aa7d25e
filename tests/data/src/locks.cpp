// A program for tests of offcpu --locks: its threads wait for locks, and measure how long.
//
//   locks CASE...    runs the cases one after the other; each takes a quarter of a second
//
// Each case prints "CASE MICROSECONDS" on standard output: how long wait_for_CASE() took, by the
// clock that offcpu reads, in all calls.  The case `holders` prints a line for each of the three
// functions that hold the lock, and `blocked` waits until a signal ends the program.
// SPDX-License-Identifier: MIT
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

#define KEEP __attribute__((noinline, noclone))

namespace {

constexpr long kMs = 1'000'000;
constexpr int kRounds = 10;

/// A write to it keeps the call before from being the last thing that a function does.
volatile long after = 0;

long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

timespec in_ms(clockid_t clock, long ms) {
  timespec time{};
  clock_gettime(clock, &time);
  time.tv_nsec += ms * kMs;
  time.tv_sec += time.tv_nsec / 1'000'000'000;
  time.tv_nsec %= 1'000'000'000;
  return time;
}

void pause_ms(long ms) {
  timespec left{0, ms * kMs};
  while (nanosleep(&left, &left) != 0) {
  }
}

void say(const char* name, long total_ns) {
  printf("%s %ld\n", name, total_ns / 1000);
  fflush(stdout);
}

template <typename Wait>
long timed(Wait wait) {
  const long began = now_ns();
  wait();
  return now_ns() - began;
}

}  // namespace

// Not in the unnamed namespace, because tests search for their names.

struct Pool {
  char before[16];
  std::mutex mutex;
};

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
Pool g_pool;
std::shared_mutex g_shared;
pthread_cond_t g_condition = PTHREAD_COND_INITIALIZER;
sem_t g_semaphore;
int g_turn = 0;
pthread_mutex_t* heap_mutex = nullptr;
pthread_mutex_t* pi_mutex = nullptr;
std::uint32_t g_word = 0;

KEEP void release_long() {
  pthread_mutex_unlock(&g_mutex);
  after = after + 1;
}
KEEP void release_medium() {
  pthread_mutex_unlock(&g_mutex);
  after = after + 2;
}
KEEP void release_short() {
  pthread_mutex_unlock(&g_mutex);
  after = after + 3;
}
KEEP void wait_for_holders() {
  pthread_mutex_lock(&g_mutex);
  after = after + 1;
}

KEEP void release_mutex() {
  pthread_mutex_unlock(heap_mutex);
  after = after + 1;
}
KEEP void wait_for_mutex() {
  pthread_mutex_lock(heap_mutex);
  after = after + 1;
}

KEEP void release_std_mutex() {
  g_pool.mutex.unlock();
  after = after + 1;
}
KEEP void wait_for_std_mutex() {
  g_pool.mutex.lock();
  after = after + 1;
}

KEEP void release_shared_mutex() {
  g_shared.unlock();
  after = after + 1;
}
KEEP void wait_for_shared_mutex() {
  g_shared.lock_shared();
  after = after + 1;
}

KEEP void release_condition() {
  pthread_mutex_lock(&g_mutex);
  g_turn = 1;
  pthread_cond_broadcast(&g_condition);
  pthread_mutex_unlock(&g_mutex);
  after = after + 1;
}
KEEP void wait_for_condition() {
  pthread_mutex_lock(&g_mutex);
  while (g_turn == 0)
    pthread_cond_wait(&g_condition, &g_mutex);
  g_turn = 0;
  pthread_mutex_unlock(&g_mutex);
  after = after + 1;
}

KEEP void release_semaphore() {
  sem_post(&g_semaphore);
  after = after + 1;
}
KEEP void wait_for_semaphore() {
  while (sem_wait(&g_semaphore) != 0 && errno == EINTR) {
  }
  after = after + 1;
}

KEEP void release_pi_mutex() {
  pthread_mutex_unlock(pi_mutex);
  after = after + 1;
}
KEEP void wait_for_pi_mutex() {
  pthread_mutex_lock(pi_mutex);
  after = after + 1;
}

KEEP void release_process() {
  pthread_mutex_unlock(heap_mutex);
  after = after + 2;
}
KEEP void wait_for_process() {
  pthread_mutex_lock(heap_mutex);
  after = after + 2;
}

KEEP void wait_for_join(pthread_t thread) {
  pthread_join(thread, nullptr);
  after = after + 1;
}

KEEP void wait_for_timeout() {
  const timespec end = in_ms(CLOCK_REALTIME, 20);
  after = after + sem_timedwait(&g_semaphore, &end);
}

KEEP void wait_for_signal() { after = after + sem_wait(&g_semaphore); }

/// The address of a futex must be mapped, and a multiple of four.
KEEP void wait_for_bad() {
  for (const std::uintptr_t address :
       {std::uintptr_t{0}, reinterpret_cast<std::uintptr_t>(&g_word) + 1,
        std::uintptr_t{0xffff800000000000}, ~std::uintptr_t{0}}) {
    const timespec limit{1, 0};
    after = after + syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, 0, &limit);
  }
  // The value is already another one.
  after = after + syscall(SYS_futex, &g_word, FUTEX_WAIT_PRIVATE, 1, nullptr);
}

namespace {

pthread_barrier_t barrier;

void nothing() {}
void lock_global() { pthread_mutex_lock(&g_mutex); }
void lock_heap() { pthread_mutex_lock(heap_mutex); }
void lock_std() { g_pool.mutex.lock(); }
void lock_shared_mutex() { g_shared.lock(); }
void lock_pi() { pthread_mutex_lock(pi_mutex); }

struct Lock {
  const char* name;
  void (*take)();
  void (*release)();
  void (*wait)();
  void (*leave)();  ///< by the thread that has waited
  long ms = 20;
};

constexpr Lock kLocks[] = {
    {"mutex", lock_heap, release_mutex, wait_for_mutex, [] { pthread_mutex_unlock(heap_mutex); }},
    {"std_mutex", lock_std, release_std_mutex, wait_for_std_mutex, [] { g_pool.mutex.unlock(); }},
    {"shared_mutex", lock_shared_mutex, release_shared_mutex, wait_for_shared_mutex,
     [] { g_shared.unlock_shared(); }},
    {"condition", nothing, release_condition, wait_for_condition, nothing},
    {"semaphore", nothing, release_semaphore, wait_for_semaphore, nothing},
    {"pi_mutex", lock_pi, release_pi_mutex, wait_for_pi_mutex,
     [] { pthread_mutex_unlock(pi_mutex); }},
};

constexpr Lock kHolders[] = {
    {"release_long", lock_global, release_long, wait_for_holders,
     [] { pthread_mutex_unlock(&g_mutex); }, 18},
    {"release_medium", lock_global, release_medium, wait_for_holders,
     [] { pthread_mutex_unlock(&g_mutex); }, 9},
    {"release_short", lock_global, release_short, wait_for_holders,
     [] { pthread_mutex_unlock(&g_mutex); }, 3},
};

void* hold(void* argument) {
  const auto& lock = *static_cast<const Lock*>(argument);
  for (int round = 0; round < kRounds; ++round) {
    lock.take();
    pthread_barrier_wait(&barrier);
    pause_ms(lock.ms);
    lock.release();
    pthread_barrier_wait(&barrier);
  }
  return nullptr;
}

/// Another thread takes the lock each time; this one waits for it.
void run(const Lock& lock) {
  pthread_t other{};
  pthread_create(&other, nullptr, hold, const_cast<Lock*>(&lock));
  long total = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&barrier);
    total += timed(lock.wait);
    lock.leave();
    pthread_barrier_wait(&barrier);
  }
  pthread_join(other, nullptr);
  say(lock.name, total);
}

void* run_briefly(void* /*argument*/) {
  pause_ms(20);
  return nullptr;
}

void join_case() {
  long total = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_t other{};
    pthread_create(&other, nullptr, run_briefly, nullptr);
    total += timed([&] { wait_for_join(other); });
  }
  say("join", total);
}

void timeout_case() {
  long total = 0;
  for (int round = 0; round < kRounds; ++round)
    total += timed(wait_for_timeout);
  say("timeout", total);
}

void* interrupt(void* argument) {
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&barrier);
    pause_ms(20);
    pthread_kill(*static_cast<pthread_t*>(argument), SIGUSR1);
    pthread_barrier_wait(&barrier);
  }
  return nullptr;
}

void signal_case() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  pthread_t self = pthread_self();
  pthread_t other{};
  pthread_create(&other, nullptr, interrupt, &self);
  long total = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&barrier);
    total += timed(wait_for_signal);
    pthread_barrier_wait(&barrier);
  }
  pthread_join(other, nullptr);
  say("signal", total);
}

/// A mutex of two processes.
void process_case() {
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    abort();
  heap_mutex = static_cast<pthread_mutex_t*>(memory);
  auto* turns = reinterpret_cast<pthread_barrier_t*>(static_cast<char*>(memory) + 1024);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(heap_mutex, &attributes);
  pthread_barrierattr_t of_barrier;
  pthread_barrierattr_init(&of_barrier);
  pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(turns, &of_barrier, 2);
  const pid_t child = fork();
  long total = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (child == 0)
      lock_heap();
    pthread_barrier_wait(turns);
    if (child == 0) {
      pause_ms(20);
      release_process();
    } else {
      total += timed(wait_for_process);
      pthread_mutex_unlock(heap_mutex);
    }
    pthread_barrier_wait(turns);
  }
  if (child == 0)
    _exit(0);
  waitpid(child, nullptr, 0);
  say("process", total);
}

void prepare() {
  pthread_barrier_init(&barrier, nullptr, 2);
  sem_init(&g_semaphore, 0, 0);
  heap_mutex = new pthread_mutex_t(PTHREAD_MUTEX_INITIALIZER);
  pi_mutex = new pthread_mutex_t();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(pi_mutex, &attributes);
}

bool run_case(const char* name) {
  for (const Lock& lock : kLocks)
    if (std::strcmp(name, lock.name) == 0)
      return run(lock), true;
  if (std::strcmp(name, "holders") == 0) {
    for (const Lock& holder : kHolders)
      run(holder);
    return true;
  }
  struct Case {
    const char* name;
    void (*run)();
  };
  constexpr Case kCases[] = {{"join", join_case},     {"timeout", timeout_case},
                             {"signal", signal_case}, {"process", process_case},
                             {"bad", wait_for_bad},   {"blocked", wait_for_semaphore}};
  for (const Case& each : kCases)
    if (std::strcmp(name, each.name) == 0)
      return each.run(), true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  prepare();
  for (int i = 1; i < argc; ++i)
    if (!run_case(argv[i]))
      return 2;
  return 0;
}
