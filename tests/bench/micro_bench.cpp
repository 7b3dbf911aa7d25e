// What the inner loops cost, one at a time.  Run by scripts/bench.
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "folded/folded_counts.h"
#include "folded/folded_line.h"
#include "perf/sample.h"
#include "stackfold/stream_folder.h"
#include "support/memory_input.h"
#include "support/stream_builder.h"
#include "symbols/demangle.h"
#include "symbols/module_symbols.h"

namespace {

using pe::testing::MadeSample;
using pe::testing::StreamBuilder;

constexpr std::size_t kFrames = 23;
constexpr std::uint64_t kCode = 0x400000;

MadeSample deep_sample(std::uint64_t time_ns) {
  MadeSample sample{.time_ns = time_ns};
  for (std::size_t i = 0; i < kFrames; ++i)
    sample.chain.push_back(kCode + 16 * i);
  return sample;
}

void parse_folded_line(benchmark::State& state) {
  std::string line = "program";
  for (std::size_t i = 0; i < kFrames; ++i)
    line += ";std::vector<int, std::allocator<int> >::push_back";
  line += " 1234";
  while (state.KeepRunning())
    benchmark::DoNotOptimize(pe::folded::parse_folded_line(line));
}
BENCHMARK(parse_folded_line);

void parse_sample(benchmark::State& state) {
  const std::string header = StreamBuilder().text();
  const std::string stream = StreamBuilder().sample(deep_sample(1)).text();
  const auto record =
      pe::perf::view_record(std::as_bytes(std::span(stream)).subspan(header.size()));
  perf_event_attr attr{};
  attr.sample_type = pe::testing::kSampleType;
  while (state.KeepRunning())
    benchmark::DoNotOptimize(pe::perf::parse_sample(record, attr));
}
BENCHMARK(parse_sample);

/// In this program's own table, a different function each time.
void find_symbol(benchmark::State& state) {
  pe::symbols::ModuleSymbols module("/proc/self/exe");
  std::vector<std::uint64_t> places;
  for (std::uint64_t svma = 0; places.size() < 4096 && svma < 0x4000000; svma += 64)
    if (const auto found = module.find_svma(svma); found && found->offset < 64)
      places.push_back(svma);
  if (places.empty())
    return state.SkipWithError("no symbols");
  std::size_t i = 0;
  while (state.KeepRunning())
    benchmark::DoNotOptimize(module.find_svma(places[i++ * 7919 % places.size()]));
}
BENCHMARK(find_symbol);

void demangle(benchmark::State& state, const std::string& name) {
  while (state.KeepRunning())
    benchmark::DoNotOptimize(pe::symbols::demangle(name));
}
BENCHMARK_CAPTURE(demangle, c, std::string("_dl_relocate_object"));
BENCHMARK_CAPTURE(
    demangle, cpp,
    std::string("_ZNSt6vectorIN5boost6fusion4pairIiSsEESaIS3_EE17_M_realloc_insertIJRKS3_EEEvN9__"
                "gnu_cxx17__normal_iteratorIPS3_S5_EEDpOT_"));
BENCHMARK_CAPTURE(
    demangle, rust,
    std::string("_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate"));

void add_seen_stack(benchmark::State& state) {
  pe::folded::FrameTable frames;
  pe::folded::FoldedCounts counts(frames);
  std::vector<std::vector<pe::folded::FrameId>> stacks;
  for (std::uint32_t stack = 0; stack < 10'000; ++stack) {
    stacks.emplace_back();
    for (std::uint32_t i = 0; i < kFrames; ++i)
      stacks.back().push_back(stack % (i + 1) * kFrames + i);
    counts.add(stacks.back(), {.whole = 1});
  }
  std::size_t i = 0;
  while (state.KeepRunning())
    counts.add(stacks[i++ * 7919 % stacks.size()], {.whole = 1});
}
BENCHMARK(add_seen_stack);

/// A stream of samples of one stack: reading, ordering, look-ups, adding up.
void fold_sample(benchmark::State& state) {
  constexpr std::uint64_t kSamples = 10'000;
  StreamBuilder builder;
  builder.event().symbol({.id = 1, .name = "function", .module = "/bin/a"});
  for (std::size_t i = 0; i < kFrames; ++i)
    builder.location(1, kCode + 16 * i - (i == 0 ? 0 : 1), {1});
  for (std::uint64_t time = 1; time <= kSamples; ++time)
    builder.sample(deep_sample(time));
  const pe::Fd file = pe::testing::memory_file(builder.round().text());
  while (state.KeepRunning()) {
    ::lseek(file.get(), 0, SEEK_SET);
    pe::io::Input input = pe::io::Input::open("-", file.get());
    pe::folded::FrameTable frames;
    pe::folded::FoldedCounts counts(frames);
    pe::fold::StreamFolder(input, {}, counts).fold();
    benchmark::DoNotOptimize(counts.size());
  }
  state.counters["a_sample"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kSamples),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(fold_sample)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
