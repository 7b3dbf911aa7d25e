// Measures the cost of unwinding one's own stack with our unwinder; libunwind_bench does so with
// libunwind.  scripts/bench runs it.
//
// "nothing" is the cost of the random tree itself; subtract it.
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include "call_tree.h"
#include "support/own_stack.h"
#include "unwind/walk/walker.h"

namespace {

using namespace pe::unwind;
using pe::bench::fixed_stack;
using pe::bench::random_tree;

/// All that a walk needs; it is made once.
struct Unwinder {
  pe::testing::OwnSpace own;
  RuleCache cache;
  Walker walker{cache};
  ThreadHistory history;
  std::uint64_t end = pe::testing::own_stack_end();
  std::array<Frame, 256> frames;
};

Unwinder& unwinder() {
  static Unwinder all;
  return all;
}

/// Reads the registers in the caller.
#define CAPTURE_REGISTERS(state)                                \
  asm volatile("lea 0(%%rip), %0; mov %%rsp, %1; mov %%rbp, %2" \
               : "=r"((state).ip), "=r"((state).sp), "=r"((state).fp))

__attribute__((noinline)) std::size_t walk() {
  Unwinder& all = unwinder();
  FrameState state;
  CAPTURE_REGISTERS(state);
  const auto result = all.walker.walk(all.own.space(), {architecture::Registers(state)},
                                      pe::testing::own_stack(state.sp, all.end), all.frames);
  return result.frames;
}

__attribute__((noinline)) std::size_t walk_with_history() {
  Unwinder& all = unwinder();
  FrameState state;
  CAPTURE_REGISTERS(state);
  const auto result =
      all.walker.walk(all.own.space(), {architecture::Registers(state)},
                      pe::testing::own_stack(state.sp, all.end), all.frames, all.history);
  return result.frames;
}

std::size_t nothing() { return 0; }

BENCHMARK_CAPTURE(fixed_stack, walk, walk, 24);
BENCHMARK_CAPTURE(fixed_stack, walk_with_history, walk_with_history, 24);
BENCHMARK_CAPTURE(random_tree, nothing, nothing);
BENCHMARK_CAPTURE(random_tree, walk, walk);
void random_tree_with_history(benchmark::State& state) {
  const auto before = unwinder().walker.statistics();
  random_tree(state, walk_with_history);
  const auto& after = unwinder().walker.statistics();
  const auto stacks = static_cast<double>(after.stacks - before.stacks);
  state.counters["walked"] = static_cast<double>(after.frames - before.frames) / stacks;
  state.counters["failed"] =
      static_cast<double>(after.failed_matches - before.failed_matches) / stacks;
}
BENCHMARK(random_tree_with_history);

/// The first use of a function: of libc's functions, one after the other.
void compile_function(benchmark::State& state) {
  const auto opened = pe::objects::Image::open("/lib/x86_64-linux-gnu/libc.so.6");
  const auto* image = std::get_if<pe::objects::Image>(&opened);
  const auto sections = image == nullptr ? std::vector<CfiSection>{} : CfiSection::all_of(*image);
  if (sections.empty())
    return state.SkipWithError("no libc");
  const CfiSection& section = sections.front();
  std::optional<UnwindTable> table;
  std::size_t next = section.fde_count();
  while (state.KeepRunning()) {
    if (next == section.fde_count()) {
      state.PauseTiming();
      table.emplace(section);
      next = 0;
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(table->rule(section.fde(next++)->start_svma));
  }
}
BENCHMARK(compile_function);

}  // namespace

BENCHMARK_MAIN();
