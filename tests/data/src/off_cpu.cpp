// Waits off its CPU, and measures for how long.
//
// Usage: off_cpu sleep COUNT MS | ping_pong SWITCHES | blocked
//
//     sleep      sleeps COUNT times for MS milliseconds, ten calls deep
//     ping_pong  two threads on one CPU wake each other in turn
//     blocked    a thread waits until the program's end
//
// PE_HANDSHAKE names two descriptors, OUT,IN.  The program writes one byte to OUT when it is ready.
// It starts when it can read a byte from IN.  Then it writes its measurements to OUT, and ends when
// IN ends.  Lines:
//
//     code START END                           addresses of the measured functions, in hexadecimal
//     thread TID WALL_NS CPU_NS SWITCHES       a thread's, over all of its measured code
//
// SPDX-License-Identifier: MIT
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

// The linker gives these names to the bounds of the section.
extern "C" const char __start_measured[],
    __stop_measured[];  // NOLINT(bugprone-reserved-identifier)

#define MEASURED __attribute__((noinline, section("measured")))

namespace {

struct Measured {
  int tid;
  std::int64_t wall_ns, cpu_ns, switches;
};

std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

std::int64_t switches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

/// Calls `last` below `depth` calls.
MEASURED void descend(int depth, void (*last)(void*), void* argument) {
  volatile char frame[24] = {};
  if (depth == 0)
    last(argument);
  else
    descend(depth - 1, last, argument);
  frame[0] = frame[1];  // no tail call
}

/// Reads the wall clock outermost, because this makes no system call: at the end of one, a thread
/// may be preempted.
MEASURED Measured measure(int tid, void (*last)(void*), void* argument) {
  constexpr int kDepth = 10;
  Measured measured{tid, 0, 0, 0};
  measured.wall_ns -= clock_ns(CLOCK_MONOTONIC);
  measured.cpu_ns -= clock_ns(CLOCK_THREAD_CPUTIME_ID);
  measured.switches -= switches();
  descend(kDepth, last, argument);
  measured.switches += switches();
  measured.cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
  measured.wall_ns += clock_ns(CLOCK_MONOTONIC);
  return measured;
}

struct Sleeps {
  int count, ms;
};

MEASURED void sleep_often(void* argument) {
  const auto& sleeps = *static_cast<const Sleeps*>(argument);
  for (int i = 0; i < sleeps.count; ++i) {
    const timespec time{sleeps.ms / 1000, sleeps.ms % 1000 * 1'000'000L};
    ::nanosleep(&time, nullptr);
  }
}

struct Player {
  std::atomic<std::uint32_t>* turn;
  std::uint32_t number, rounds;
  Measured measured;
};

MEASURED void play(void* argument) {
  const auto& player = *static_cast<const Player*>(argument);
  auto* word = reinterpret_cast<std::uint32_t*>(player.turn);
  for (std::uint32_t round = 0; round < player.rounds; ++round) {
    while (player.turn->load() != player.number)
      ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 1 - player.number, nullptr);
    player.turn->store(1 - player.number);
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
  }
}

void* player_thread(void* argument) {
  auto& player = *static_cast<Player*>(argument);
  player.measured = measure(::gettid(), play, argument);
  return nullptr;
}

void wait_for_end(int in) {
  char byte = 0;
  while (::read(in, &byte, 1) > 0) {
  }
}

struct Blocked {
  int in;
  std::atomic<bool> begins;
};

void* blocked_thread(void* argument) {
  auto& blocked = *static_cast<Blocked*>(argument);
  const int in = blocked.in;
  blocked.begins = true;
  wait_for_end(in);
  return nullptr;
}

void print(const Measured& measured, char* text, std::size_t room) {
  const std::size_t used = std::strlen(text);
  std::snprintf(text + used, room - used, "thread %d %lld %lld %lld\n", measured.tid,
                static_cast<long long>(measured.wall_ns), static_cast<long long>(measured.cpu_ns),
                static_cast<long long>(measured.switches));
}

void play_together(std::uint32_t rounds, char* text, std::size_t room) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof one, &one);
  std::atomic<std::uint32_t> turn{0};
  Player players[] = {{&turn, 0, rounds, {}}, {&turn, 1, rounds, {}}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    ::pthread_create(&threads[i], nullptr, player_thread, &players[i]);
  for (const pthread_t thread : threads)
    ::pthread_join(thread, nullptr);
  for (const Player& player : players)
    print(player.measured, text, room);
}

/// Starts a thread and waits until it has been blocked for a while.
void block(Blocked& blocked, pthread_t& thread) {
  ::pthread_create(&thread, nullptr, blocked_thread, &blocked);
  const timespec time{0, 50'000'000};
  do
    ::nanosleep(&time, nullptr);
  while (!blocked.begins);
}

}  // namespace

int main(int argc, char** argv) {
  int out = 1;
  int in = 0;
  const char* handshake = std::getenv("PE_HANDSHAKE");
  if (argc < 2 || (handshake != nullptr && std::sscanf(handshake, "%d,%d", &out, &in) != 2))
    return 2;
  char byte = '\n';
  if (::write(out, &byte, 1) != 1 || ::read(in, &byte, 1) != 1)
    return 1;
  char text[512];
  std::snprintf(text, sizeof text, "code %llx %llx\n",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(__start_measured)),
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(__stop_measured)));
  Blocked blocked{in, false};
  pthread_t thread = ::pthread_self();
  if (std::strcmp(argv[1], "sleep") == 0 && argc == 4) {
    Sleeps sleeps{std::atoi(argv[2]), std::atoi(argv[3])};
    print(measure(::gettid(), sleep_often, &sleeps), text, sizeof text);
  } else if (std::strcmp(argv[1], "ping_pong") == 0 && argc == 3) {
    play_together(static_cast<std::uint32_t>(std::atoi(argv[2]) / 2), text, sizeof text);
  } else {
    block(blocked, thread);
  }
  if (::write(out, text, std::strlen(text)) < 0)
    return 1;
  if (blocked.begins)
    ::pthread_join(thread, nullptr);
  else
    wait_for_end(in);
  return 0;
}
