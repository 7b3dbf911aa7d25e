// Any bytes as a sample stream, with or without names: what is folded from them
// is folded text that reads back.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "folded/folded_counts.h"
#include "fuzz/check_folded.h"
#include "io/output.h"
#include "stackfold/stream_folder.h"
#include "support/memory_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::fold::Options options;
  if (size % 2 != 0) {  // the other half of what options can do
    options.marks = {.kernel = true, .jit = true, .inlined = true, .library = true};
    options.root = pe::fold::RootName::kCommPidTid;
    options.weight = pe::fold::Weight::kPeriod;
  }
  pe::io::Input input = pe::testing::memory_input({data, size});
  pe::folded::FrameTable frames;
  pe::folded::FoldedCounts counts(frames);
  try {
    const auto report = pe::fold::StreamFolder(input, options, counts).fold();
    if (counts.size() > report.counts.samples)
      std::abort();
  } catch (const pe::Error&) {
    return 0;  // no stream at all
  }
  pe::io::StringOutput out;
  counts.write(out);
  pe::testing::check_folded(out.text, counts.size());
  return 0;
}
