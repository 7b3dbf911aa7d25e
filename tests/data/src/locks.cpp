// A program for tests of offcpu --locks: its threads wait for locks, and measure how long.
//
//   locks CASE...    runs the cases one after the other; each takes a quarter of a second
//
// Each case prints "CASE LEAST MOST" on standard output: wait_for_CASE() was off its CPU for
// between LEAST and MOST microseconds in all calls, by the clock that offcpu reads.  MOST is how
// long the calls took.  For LEAST, another thread reads the clock twice: it has seen the first one
// asleep, and it is about to end the wait.  A busy machine moves the two numbers apart, and cannot
// falsify them. The case `holders` prints a line for each of the three functions that hold the
// lock.  `blocked` prints its line once it sleeps, and waits until a signal ends the program.
// SPDX-License-Identifier: MIT
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "observed_wait.h"

#define KEEP __attribute__((noinline, noclone))

namespace {

constexpr int kRounds = 10;
constexpr long kTimeoutMs = 30;  ///< longer than the system interrupts a running thread for

volatile long after = 0;  ///< a write to it keeps the call before from being a jump

timespec in_ms(clockid_t clock, long ms) {
  timespec time{};
  clock_gettime(clock, &time);
  time.tv_nsec += ms * kMs;
  time.tv_sec += time.tv_nsec / 1'000'000'000;
  time.tv_nsec %= 1'000'000'000;
  return time;
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
  pthread_mutex_unlock(&g_mutex);  // first, so that the other thread never waits for it
  pthread_cond_broadcast(&g_condition);
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
KEEP void wait_for_semaphore() { after = after + sem_wait(&g_semaphore) + 1; }

/// These post g_semaphore; locks.S has them.
extern "C" void release_uncommon(), release_lost();
KEEP void wait_for_uncommon() { after = after + sem_wait(&g_semaphore) + 2; }
KEEP void wait_for_lost() { after = after + sem_wait(&g_semaphore) + 3; }

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
  const timespec end = in_ms(CLOCK_REALTIME, kTimeoutMs);
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
    {"uncommon", nothing, release_uncommon, wait_for_uncommon, nothing},
    {"lost", nothing, release_lost, wait_for_lost, nothing},
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

struct Held {
  const Lock& lock;
  Observed wait;
};

void* hold(void* argument) {
  auto& held = *static_cast<Held*>(argument);
  for (int round = 0; round < kRounds; ++round) {
    held.lock.take();
    pthread_barrier_wait(&barrier);
    held.wait.await_sleep();
    pause_ms(held.lock.ms);
    held.wait.release();
    held.lock.release();
    pthread_barrier_wait(&barrier);
  }
  return nullptr;
}

/// Another thread takes the lock each time; this one waits for it.
void run(const Lock& lock) {
  Held held{lock, {}};
  pthread_t other{};
  pthread_create(&other, nullptr, hold, &held);
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&barrier);
    held.wait.start();
    lock.wait();
    held.wait.end();
    lock.leave();
    pthread_barrier_wait(&barrier);
    held.wait.add();
  }
  pthread_join(other, nullptr);
  held.wait.say(lock.name);
}

void* run_briefly(void* argument) {
  auto& wait = *static_cast<Observed*>(argument);
  wait.await_sleep();
  pause_ms(20);
  wait.release();
  return nullptr;
}

void join_case() {
  Observed wait;
  for (int round = 0; round < kRounds; ++round) {
    pthread_t other{};
    pthread_create(&other, nullptr, run_briefly, &wait);
    wait.start();
    wait_for_join(other);
    wait.end();
    wait.add();
  }
  wait.say("join");
}

/// A wait that a timeout ends, or a signal to this thread.
struct EndsEarly {
  pthread_t signalled{};
  Observed wait;
};

void* end_early(void* argument) {
  auto& early = *static_cast<EndsEarly*>(argument);
  for (int round = 0; round < kRounds; ++round) {
    early.wait.await_sleep();
    early.wait.release_after(kTimeoutMs);
    if (early.signalled != 0) {
      pause_ms(20);
      early.wait.release();
      pthread_kill(early.signalled, SIGUSR1);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  return nullptr;
}

void run_early(const char* name, void (*wait_for_it)(), pthread_t signalled) {
  EndsEarly early{signalled, {}};
  pthread_t other{};
  pthread_create(&other, nullptr, end_early, &early);
  for (int round = 0; round < kRounds; ++round) {
    early.wait.start();
    wait_for_it();
    early.wait.end();
    pthread_barrier_wait(&barrier);
    early.wait.add();
    pthread_barrier_wait(&barrier);
  }
  pthread_join(other, nullptr);
  early.wait.say(name);
}

void timeout_case() { run_early("timeout", wait_for_timeout, 0); }

void signal_case() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  run_early("signal", wait_for_signal, pthread_self());
}

void blocked_case() {
  Observed wait;
  std::thread([&wait] {
    wait.await_sleep();
    wait.say("blocked");
  }).detach();
  wait.start();
  wait_for_semaphore();
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
  auto* wait = new (static_cast<char*>(memory) + 2048) Observed;
  const pid_t child = fork();
  for (int round = 0; round < kRounds; ++round) {
    if (child == 0)
      lock_heap();
    pthread_barrier_wait(turns);
    if (child == 0) {
      wait->await_sleep();
      pause_ms(20);
      wait->release();
      release_process();
    } else {
      wait->start();
      wait_for_process();
      wait->end();
      pthread_mutex_unlock(heap_mutex);
    }
    pthread_barrier_wait(turns);
    if (child != 0)
      wait->add();
  }
  if (child == 0)
    _exit(0);
  waitpid(child, nullptr, 0);
  wait->say("process");
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
  constexpr std::pair<const char*, void (*)()> kCases[] = {
      {"join", join_case},       {"timeout", timeout_case}, {"signal", signal_case},
      {"process", process_case}, {"bad", wait_for_bad},     {"blocked", blocked_case}};
  for (const auto& [of, run] : kCases)
    if (std::strcmp(name, of) == 0)
      return run(), true;
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
