// Measures the cost of the inner loops, one at a time.  scripts/bench runs it.
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <string>
#include <vector>

#include "folded/folded_line.h"
#include "names/demangle.h"
#include "names/module_symbols.h"
#include "stackfold/folded_counts.h"
#include "stackfold/stream_collapser.h"
#include "stream/records/sample.h"
#include "support/large_library.h"
#include "support/memory_input.h"
#include "support/stream_builder.h"

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
      pe::stream::view_record(std::as_bytes(std::span(stream)).subspan(header.size()));
  perf_event_attr attr{};
  attr.sample_type = pe::testing::kSampleType;
  while (state.KeepRunning())
    benchmark::DoNotOptimize(pe::stream::parse_sample(record, attr));
}
BENCHMARK(parse_sample);

/// Looks up a different function of this program's own table each time.
void find_symbol(benchmark::State& state) {
  pe::names::ModuleSymbols module(pe::objects::Image::open("/proc/self/exe"));
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

const std::string kLargeLibrary = pe::testing::large_library();

std::uint64_t table_bytes(const pe::objects::Image& image) {
  std::uint64_t bytes = 0;
  for (const char* name : {".symtab", ".strtab", ".dynsym", ".dynstr"})
    if (const auto* section = image.section(name))
      bytes += section->bytes;
  return bytes;
}

/// Reads the symbols of a library.  "memory" is the memory that this takes, "tables" the size of
/// the tables in the file.
void load_symbols(benchmark::State& state, const std::string& path) {
  const auto opened = pe::objects::Image::open(path);
  const auto* image = std::get_if<pe::objects::Image>(&opened);
  if (image == nullptr)
    return state.SkipWithError("no such library");
  std::size_t memory = 0;
  while (state.KeepRunning()) {
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    pe::names::ModuleSymbols module(pe::objects::Image::open(path));
    module.find_svma(0);
    memory = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    benchmark::DoNotOptimize(module);
  }
  state.counters["memory"] = static_cast<double>(memory);
  state.counters["tables"] = static_cast<double>(table_bytes(*image));
}
BENCHMARK_CAPTURE(load_symbols, libllvm, kLargeLibrary)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_symbols, own, "/proc/self/exe")->Unit(benchmark::kMillisecond);

/// Looks up a million addresses in all of a library's code.  This includes demangling each name
/// when it first occurs.
void million_lookups(benchmark::State& state) {
  const auto opened = pe::objects::Image::open(kLargeLibrary);
  const auto* image = std::get_if<pe::objects::Image>(&opened);
  const auto* code = image == nullptr ? nullptr : image->section(".text");
  if (code == nullptr)
    return state.SkipWithError("no such library");
  constexpr std::uint64_t kLookups = 1'000'000;
  std::uint64_t found = 0;
  while (state.KeepRunning()) {
    state.PauseTiming();
    pe::names::ModuleSymbols module(pe::objects::Image::open(kLargeLibrary));
    module.find_svma(0);
    state.ResumeTiming();
    std::uint64_t random = 1;
    found = 0;
    for (std::uint64_t i = 0; i < kLookups; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;  // Knuth's generator
      found += module.find_svma(code->svma + (random >> 16) % code->bytes) ? 1 : 0;
    }
  }
  state.counters["found"] = static_cast<double>(found);
}
BENCHMARK(million_lookups)->Unit(benchmark::kMillisecond);

void demangle(benchmark::State& state, const std::string& name) {
  while (state.KeepRunning())
    benchmark::DoNotOptimize(pe::names::demangle(name));
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

/// Folds a stream with samples of one stack: reading, ordering, lookups, adding up.
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
    pe::Input input = pe::Input::open("-", file.get());
    pe::folded::FrameTable frames;
    pe::folded::FoldedCounts counts(frames);
    pe::fold::StreamCollapser(input, {}, counts).fold();
    benchmark::DoNotOptimize(counts.size());
  }
  state.counters["a_sample"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kSamples),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(fold_sample)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
