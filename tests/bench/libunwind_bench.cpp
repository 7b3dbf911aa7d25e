// Measures the cost of unwinding one's own stack with libunwind's cached unw_backtrace, as
// unwind_bench does for our unwinder.
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <array>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "call_tree.h"

namespace {

using pe::bench::fixed_stack;
using pe::bench::random_tree;

__attribute__((noinline)) std::size_t unw_backtrace() {
  static std::array<void*, 256> frames;
  return static_cast<std::size_t>(::unw_backtrace(frames.data(), frames.size()));
}

std::size_t nothing() { return 0; }

BENCHMARK_CAPTURE(fixed_stack, unw_backtrace, unw_backtrace, 24);
BENCHMARK_CAPTURE(random_tree, nothing, nothing);
BENCHMARK_CAPTURE(random_tree, unw_backtrace, unw_backtrace);

}  // namespace

BENCHMARK_MAIN();
