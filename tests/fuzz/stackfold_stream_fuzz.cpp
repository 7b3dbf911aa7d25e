// Folds any bytes as a sample stream, with or without symbols.  The result is folded text that can
// be read back, and is the same if the bytes arrive in pieces.  Counts divided by time add up to
// the same counts.  Sizes decide whether only the samples inside calls are folded, and which root
// frames there are.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "fuzz/check_folded.h"
#include "stackfold/folded_counts.h"
#include "stackfold/stream_collapser.h"
#include "support/memory_input.h"
#include "support/string_output.h"

namespace {

struct Folded {
  std::string text;
  std::size_t stacks = 0;
  std::uint64_t samples = 0;
  bool operator==(const Folded&) const = default;
};

/// nullopt: the bytes are not a stream.
std::optional<Folded> fold(pe::Input input, const pe::fold::Options& options) {
  pe::folded::FrameTable frames;
  pe::folded::FoldedCounts counts(frames);
  std::uint64_t samples = 0;
  try {
    samples = pe::fold::StreamCollapser(input, options, counts).fold().counts.samples;
  } catch (const pe::Error&) {
    return std::nullopt;
  }
  pe::StringOutput out;
  counts.write(out);
  return Folded{std::move(out.text), counts.size(), samples};
}

void check_steps(std::string_view bytes, const pe::fold::Options& options) {
  using pe::folded::FoldedCounts;
  pe::folded::FrameTable frames;
  FoldedCounts counts(frames);
  FoldedCounts sums(frames);
  const std::uint64_t ns_per_count = options.weight == pe::fold::Weight::kPeriod ? 1 : 1000;
  counts.set_timeline(pe::folded::Timeline(*options.every_ns, ns_per_count));
  pe::StringOutput out;
  try {
    pe::Input input = pe::testing::memory_input(bytes);
    pe::fold::StreamCollapser(input, options, counts).fold();
    constexpr std::uint64_t kMostStacks = 20;  // 1,000,000 steps of each are slow enough
    if (counts.size() > kMostStacks)
      return;
    counts.write(out);
  } catch (const pe::Error&) {
    return;
  }
  if (counts.saturated())
    return;
  for (std::string_view left = out.text; !left.empty();) {
    const auto line = pe::folded::parse_folded_line(left.substr(0, left.find('\n')));
    left.remove_prefix(left.find('\n') + 1);
    if (!line || line->stack[0] != '@')
      std::abort();
    sums.add(line->stack.substr(line->stack.find(';') + 1), line->count);
  }
  pe::StringOutput summed;
  sums.write(summed);
  FoldedCounts whole(frames);
  counts.for_each([&](auto stack, pe::folded::Count count) { whole.add(stack, count); });
  pe::StringOutput wanted;
  whole.write(wanted);
  if (summed.text != wanted.text)
    std::abort();
}

/// A perf.data file cannot be a pipe: the reader seeks to its attributes.
bool is_file(std::string_view bytes) {
  constexpr std::string_view kBegin("PERFILE2\x10\0\0\0\0\0\0\0", 16);
  return !bytes.starts_with(kBegin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view bytes(data, size);
  pe::fold::Options options;
  if (size % 2 != 0) {  // the other half of the options
    options.marks = {.kernel = true, .jit = true, .inlined = true, .library = true};
    options.root = pe::fold::RootName::kCommPidTid;
    options.weight = pe::fold::Weight::kPeriod;
  }
  constexpr std::size_t kRoots = 5;
  options.roots = static_cast<pe::fold::Roots>(size % kRoots);
  options.marks_waits = options.roots == pe::fold::Roots::kTree;
  constexpr std::size_t kShareWithCalls = 3;
  options.chooses_calls = size % kShareWithCalls == 0;
  constexpr std::uint64_t kSteps[] = {1'000'000, 1'000'000'000, 3'600'000'000'000};
  pe::fold::Options with_steps = options;
  with_steps.every_ns = kSteps[size % std::size(kSteps)];
  check_steps(bytes, with_steps);
  const auto folded = fold(pe::testing::memory_input(bytes), options);
  constexpr std::size_t kMostInPieces = 32 * 1024;
  if (size <= kMostInPieces && !is_file(bytes) &&
      fold(pe::testing::input_in_pieces(bytes), options) != folded)
    std::abort();
  if (!folded)
    return 0;
  if (folded->stacks > folded->samples)
    std::abort();
  pe::testing::check_folded(folded->text, folded->stacks);
  return 0;
}
