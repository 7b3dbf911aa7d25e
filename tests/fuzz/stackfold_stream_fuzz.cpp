// Any bytes as a sample stream, with or without names: what is folded from them
// is folded text that reads back.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "folded/folded_counts.h"
#include "folded/folded_line.h"
#include "io/output.h"
#include "stackfold/stream_folder.h"
#include "support/memory_input.h"

namespace {

/// Every line must say what it was made of.
void check_text(std::string_view text, std::size_t lines) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos || lines-- == 0)
      std::abort();
    const std::string_view line = text.substr(0, end);
    const auto folded = pe::folded::parse_folded_line(line);
    if (!folded || folded->stack.front() == ';' || folded->stack.back() == ';' ||
        folded->stack.find(";;") != std::string_view::npos)
      std::abort();
    text.remove_prefix(end + 1);
  }
  if (lines != 0)
    std::abort();
}

}  // namespace

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
  check_text(out.text, counts.size());
  return 0;
}
