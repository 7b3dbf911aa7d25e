// Threads that all work a little: they show the cost of a recorder as the number of threads grows.
//
// Usage: many_threads THREADS SECONDS
//
// Together they use one processor, whatever their number: each works for some microseconds and then
// sleeps while the others have their turns.  The program prints "ready" when all have started.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/parse_number.h"

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

struct Plan {
  std::int64_t threads = 0;
  Clock::time_point end;
  std::atomic<std::int64_t> begun = 0;
};

volatile std::uint64_t sink;

/// Sleeps with nanosleep(2): tens of thousands of threads cannot share a futex without waking each
/// other.
void sleep_for(Microseconds time) {
  const auto ns = static_cast<std::int64_t>(time.count() * 1000);
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  const timespec wanted{ns / kSecondNs, ns % kSecondNs};
  ::nanosleep(&wanted, nullptr);
}

__attribute__((noinline)) void work_for(Microseconds time) {
  for (const auto until = Clock::now() + time; Clock::now() < until;) {
    for (int i = 0; i < 1000; ++i)
      sink = sink + 1;
  }
}

void* take_turns(void* argument) {
  auto& plan = *static_cast<Plan*>(argument);
  const std::int64_t number = plan.begun++;
  // A turn takes 0.2 ms with few threads, and 10 ms with thousands, whose turns are rare anyway.
  const Microseconds turn(plan.threads < 1000 ? 200 : 10'000);
  const auto sleep_turns = [&](std::int64_t turns) {
    const Microseconds left = plan.end - Clock::now();
    sleep_for(std::min(turn * static_cast<double>(turns), left));
  };
  sleep_turns(number);
  while (Clock::now() < plan.end) {
    work_for(turn);
    sleep_turns(plan.threads - 1);
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const auto threads = argc == 3 ? pe::parse_number<std::uint32_t>(argv[1]) : std::nullopt;
  const auto seconds = argc == 3 ? pe::parse_number<std::uint32_t>(argv[2]) : std::nullopt;
  if (!threads || *threads == 0 || !seconds) {
    fmt::print(stderr, "usage: many_threads THREADS SECONDS\n");
    return 2;
  }
  Plan plan;
  plan.threads = *threads;
  plan.end = Clock::now() + std::chrono::seconds(*seconds);
  pthread_attr_t attributes{};
  ::pthread_attr_init(&attributes);
  constexpr std::size_t kStackBytes = 64 * 1024;
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  std::vector<pthread_t> all(*threads);
  for (pthread_t& thread : all) {
    if (::pthread_create(&thread, &attributes, take_turns, &plan) != 0) {
      fmt::print(stderr, "many_threads: the system allows no more threads\n");
      return 1;
    }
  }
  while (plan.begun < plan.threads)
    sleep_for(Microseconds(1000));
  fmt::print("ready\n");
  std::fflush(stdout);
  for (const pthread_t& thread : all)
    ::pthread_join(thread, nullptr);
}
