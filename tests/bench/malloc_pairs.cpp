// Measures the cost of a pair of malloc and free, from stacks of 20 frames without frame pointers.
//
//     malloc_pairs THREADS PAIRS_PER_DESCENT [MILLIONS [DEPTH [VARIETY]]]
//
// Each thread calls down along one of VARIETY random paths (4 by default).  There it does some
// pairs: it frees one of 256 blocks and allocates 16 to 512 bytes in its place.  The program prints
// nanoseconds of processor time for each pair.  Run it alone, and with the library of malloctrace.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Work {
  std::uint64_t state;
  std::uint64_t left;  ///< pairs left to do
  unsigned pairs_per_descent, depth, variety;
  std::array<void*, 256> blocks;

  std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
};

[[gnu::noinline]] void do_pairs(Work& work) {
  for (unsigned i = 0; i < work.pairs_per_descent; ++i) {
    const std::uint64_t number = work.next();
    void*& block = work.blocks[number % work.blocks.size()];
    std::free(block);
    block = std::malloc(16 + (number >> 32) % 497);
  }
}

template <int kNumber>
struct Level {
  [[gnu::noinline]] static void descend(Work& work, unsigned depth, std::uint64_t path);
};

using Descend = void (*)(Work&, unsigned, std::uint64_t);
constexpr std::array<Descend, 8> kLevels = {Level<0>::descend, Level<1>::descend, Level<2>::descend,
                                            Level<3>::descend, Level<4>::descend, Level<5>::descend,
                                            Level<6>::descend, Level<7>::descend};

template <int kNumber>
void Level<kNumber>::descend(Work& work, unsigned depth, std::uint64_t path) {
  if (depth == 0)
    do_pairs(work);
  else
    kLevels[path % 8](work, depth - 1, path >> 3);
  asm volatile("" ::: "memory", "rbx", "r12");  // frames of different sizes, and no tail calls
}

void run(Work& work) {
  while (work.left >= work.pairs_per_descent) {
    work.left -= work.pairs_per_descent;
    kLevels[0](work, work.depth - 1, (work.next() % work.variety + 1) * 0x9e3779b97f4a7c15);
  }
  for (void* block : work.blocks)
    std::free(block);
}

double cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int number, unsigned long otherwise) {
    return number < argc ? std::stoul(argv[number]) : otherwise;
  };
  const auto threads = static_cast<unsigned>(argument(1, 1));
  const std::uint64_t pairs = argument(3, 2) * 1000000;
  std::vector<Work> work(threads);
  for (unsigned i = 0; i < threads; ++i)
    work[i] = {88172645463325252UL + i * 7919UL,       pairs,
               static_cast<unsigned>(argument(2, 16)), static_cast<unsigned>(argument(4, 20)) - 3,
               static_cast<unsigned>(argument(5, 4)),  {}};
  const double start = cpu_ns();
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back([&work, i] { run(work[i]); });
  run(work[0]);
  for (std::thread& thread : others)
    thread.join();
  fmt::print("{:.1f}\n", (cpu_ns() - start) / static_cast<double>(pairs * threads));
}
