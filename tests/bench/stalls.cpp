// Measures how long a program's threads do not run while another program attaches to it.
//
//     stalls [THREADS]
//
// Each of THREADS threads (1,000 by default) allocates and frees a block every 20 ms.  At the end
// of standard input the program prints the longest time in milliseconds by which one was late, and
// how many were late by more than 50 ms at any time.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

int main(int count, char** arguments) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kStep(20);
  const std::size_t threads = count > 1 ? std::stoul(arguments[1]) : 1000;
  std::vector<std::atomic<double>> worst_ms(threads);
  for (std::atomic<double>& own_ms : worst_ms)
    std::thread([&own_ms, kStep] {
      for (auto due = Clock::now();; due = Clock::now()) {
        std::free(std::malloc(100));
        std::this_thread::sleep_for(kStep);
        const std::chrono::duration<double, std::milli> late = Clock::now() - due - kStep;
        own_ms = std::max(own_ms.load(), late.count());
      }
    }).detach();
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  constexpr double kLongMs = 50;
  const auto longest = std::max_element(worst_ms.begin(), worst_ms.end());
  const auto late = std::count_if(worst_ms.begin(), worst_ms.end(),
                                  [](const std::atomic<double>& ms) { return ms > kLongMs; });
  fmt::print("{:.1f} {}\n", longest->load(), late);
  std::fflush(stdout);
  std::_Exit(0);  // the threads still run
}
