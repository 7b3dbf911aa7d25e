// Any bytes as those of a format: what is folded from them is folded text that reads back.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "folded/folded_counts.h"
#include "fuzz/check_folded.h"
#include "io/output.h"
#include "stackfold/formats/format.h"
#include "support/memory_input.h"

namespace pe::testing {

/// `name` as --from has it.  Options vary with the size of the input.
inline void fold_as(std::string_view name, std::string_view bytes) {
  fold::Options options;
  if (bytes.size() % 2 != 0) {
    options.marks = {.kernel = true, .jit = true, .inlined = true, .library = true};
    options.root = fold::RootName::kCommPidTid;
  }
  options.all_events = bytes.size() % 3 == 0;
  const fold::Format* const format = fold::find_format(name);
  format->looks_like(bytes);
  io::Input input = memory_input(bytes);
  folded::FrameTable frames;
  folded::FoldedCounts counts(frames);
  const auto report = format->fold(input, options, counts);
  constexpr std::size_t kMostTypes = 64;  // of a pprof profile, each a stack of its own
  if (counts.size() > (report.samples + 1) * (options.all_events ? kMostTypes : 1))
    std::abort();
  io::StringOutput out;
  counts.write(out);
  check_folded(out.text, counts.size());
}

}  // namespace pe::testing
