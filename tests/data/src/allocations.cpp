// Makes allocations of known numbers and sizes, in functions that are named after them.
// Usage: allocations PATTERN.  tests/live/heap/malloctrace.sh knows what each pattern allocates.
// SPDX-License-Identifier: MIT
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#define PLAIN extern "C" __attribute__((noinline))

namespace {
void* kept[1000];
void* volatile early_block;
}  // namespace

PLAIN void* take(std::size_t bytes) {
  void* block = std::malloc(bytes);
  std::memset(block, 1, bytes);
  return block;
}

PLAIN void keep_ten_of_100() {
  for (int i = 0; i < 10; ++i)
    kept[i] = take(100);
}

PLAIN void keep_three_of_1000() {
  for (int i = 0; i < 3; ++i)
    kept[100 + i] = take(1000);
}

PLAIN void free_thousand_of_64() {
  for (int i = 0; i < 1000; ++i)
    std::free(take(64));
}

/// 16, 32 ... 1024 bytes: seven allocations with 2032 bytes in all; the last block is kept.
PLAIN void double_until_1024() {
  void* block = nullptr;
  for (std::size_t bytes = 16; bytes <= 1024; bytes *= 2)
    block = std::realloc(block, bytes);
  kept[200] = block;
}

PLAIN void peak_of_10000() {
  void* blocks[10];
  for (void*& block : blocks)
    block = take(1000);
  for (void* block : blocks)
    std::free(block);
}

PLAIN void every_kind_of_77() {
  void* aligned = nullptr;
  if (::posix_memalign(&aligned, 64, 77) == 0)
    kept[300] = aligned;
  kept[301] = std::aligned_alloc(32, 96);
  kept[302] = std::calloc(7, 11);
  kept[303] = ::operator new(77);
  kept[304] = ::operator new[](77, std::nothrow);
  kept[305] = ::reallocarray(nullptr, 7, 11);
  kept[306] = ::memalign(128, 77);
}

PLAIN void map_three_of_8192() {
  for (int i = 0; i < 3; ++i)
    kept[320 + i] =
        ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(kept[320], 8192);
}

PLAIN void refused() { kept[310] = std::malloc(PTRDIFF_MAX); }

PLAIN void work_of_thread() {
  for (int i = 0; i < 1000; ++i)
    std::free(take(48));
}

PLAIN void keep_of_child() { kept[400] = take(700); }
PLAIN void keep_of_parent() { kept[401] = take(500); }

PLAIN __attribute__((constructor)) void before_main() { early_block = take(333); }

/// 200,000 allocations of 1 to 1000 bytes; every fourth block is kept.
PLAIN void many_sizes() {
  std::uint32_t state = 1;
  static void* some[50'000];
  for (int i = 0; i < 200'000; ++i) {
    state = state * 1664525 + 1013904223;
    void* block = std::malloc(1 + (state >> 8) % 1000);
    if (i % 4 == 0)
      some[i / 4] = block;
    else
      std::free(block);
  }
  kept[500] = some[0];
}

namespace {

void fork_once() {
  keep_of_parent();
  const pid_t child = ::fork();
  if (child == 0) {
    keep_of_child();
    std::free(kept[401]);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

void use_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back(work_of_thread);
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view pattern = argc > 1 ? argv[1] : "";
  if (pattern == "leaks") {
    free_thousand_of_64();
    keep_ten_of_100();
    keep_three_of_1000();
    double_until_1024();
  } else if (pattern == "kinds") {
    every_kind_of_77();
    refused();
  } else if (pattern == "maps") {
    map_three_of_8192();
  } else if (pattern == "peak") {
    peak_of_10000();
    keep_ten_of_100();
  } else if (pattern == "threads") {
    use_threads();
  } else if (pattern == "fork") {
    fork_once();
  } else if (pattern == "killed") {
    keep_ten_of_100();
    ::raise(SIGKILL);
  } else if (pattern == "leaves") {
    keep_three_of_1000();
    ::_exit(7);
  } else if (pattern == "sizes") {
    many_sizes();
  } else if (pattern == "waits") {
    keep_ten_of_100();
    (void)!::write(STDOUT_FILENO, "ready\n", 6);
    ::sleep(60);
  } else {
    return 2;
  }
  return 0;
}
