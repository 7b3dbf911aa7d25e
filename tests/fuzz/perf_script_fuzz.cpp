// Folds any text as the output of perf script.  The result is folded text that can be read back,
// also with the perl script's rules, and is the same if the input arrives in pieces.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/check_folded.h"
#include "stackfold/folded_counts.h"
#include "stackfold/formats/perf_script/perf_script_collapser.h"
#include "stackfold/refine.h"
#include "support/memory_input.h"
#include "support/string_output.h"

namespace {

std::string text_of_pieces(std::string_view text, const pe::fold::Options& options) {
  pe::Input input = pe::testing::input_in_pieces(text);
  pe::folded::FrameTable frames;
  pe::folded::FoldedCounts counts(frames);
  pe::fold::PerfScriptCollapser(counts, options).fold(input);
  pe::StringOutput out;
  counts.write(out);
  return std::move(out.text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::fold::Options options;
  options.is_perl = size % 3 == 0;
  if (size % 2 != 0) {
    options.marks = {.kernel = true, .jit = true, .inlined = true, .library = true};
    options.root = pe::fold::RootName::kCommPidTid;
    options.with_addresses = true;
  }
  options.with_lines = size % 4 == 0;
  if (size % 5 == 0)
    options.time = pe::stream::parse_time_range("1,2000000");
  const pe::fold::Options whole_options = options;
  pe::Input input = pe::testing::memory_input({data, size});
  pe::folded::FrameTable frames;
  pe::folded::FoldedCounts counts(frames);
  const auto report = pe::fold::PerfScriptCollapser(counts, options).fold(input);
  if (counts.size() > report.samples)
    std::abort();
  options.is_recursive = true;
  options.exclude = {"(a|b+)+c$"};
  pe::folded::FoldedCounts refined(frames);
  const auto left_out = pe::fold::Refiner(options).apply(counts, refined);
  if (refined.size() + left_out.stacks > counts.size())
    std::abort();
  pe::StringOutput out;
  counts.write(out);
  constexpr std::size_t kMostInPieces = 32 * 1024;
  if (size <= kMostInPieces && text_of_pieces({data, size}, whole_options) != out.text)
    std::abort();
  if (!options.is_perl)  // the perl script writes empty frames and other text
    pe::testing::check_folded(out.text, counts.size());
  return 0;
}
