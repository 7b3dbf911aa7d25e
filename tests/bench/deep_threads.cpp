// A program to record: busy threads with deep stacks that change all the time.
//
// Usage: deep_threads THREADS SECONDS
//
// Each thread calls and returns at random between 100 and 300 frames of some 300 bytes, up to 90
// KB, without frame pointers.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/parse_number.h"

namespace {

struct Random {  // xorshift64
  std::uint64_t seed;
  std::uint64_t next() {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed >> 20;
  }
};

constexpr int kLeast = 100, kMost = 300;

/// Above kLeast there are on average as many calls as returns, so that all depths occur.
__attribute__((noinline)) void descend(Random& random, int depth, const std::stop_token& stop) {
  volatile char frame[250];
  frame[static_cast<std::size_t>(depth) % sizeof frame] = 1;
  while (!stop.stop_requested() && (depth < kLeast || (depth < kMost && random.next() % 2 != 0)))
    descend(random, depth + 1, stop);
  for (std::uint64_t i = random.next() % 1024; i > 0; --i)
    frame[i % sizeof frame] = static_cast<char>(i);
}

}  // namespace

int main(int argc, char** argv) {
  const auto threads = argc == 3 ? pe::parse_number<std::uint8_t>(argv[1]) : std::nullopt;
  const auto seconds = argc == 3 ? pe::parse_number<std::uint16_t>(argv[2]) : std::nullopt;
  if (!threads || !seconds) {
    fmt::print(stderr, "Usage: deep_threads THREADS SECONDS\n");
    return 2;
  }
  std::vector<std::jthread> running;  // the destructors ask the threads to stop, and wait for them
  running.reserve(*threads);
  for (std::uint8_t i = 0; i < *threads; ++i)
    running.emplace_back([i](const std::stop_token& stop) {
      Random random{88172645463325252ULL + i};
      descend(random, 0, stop);
    });
  std::this_thread::sleep_for(std::chrono::seconds(*seconds));
  return 0;
}
