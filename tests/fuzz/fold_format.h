// Folds any bytes as those of a format.  The result is folded text that can be read back, and is
// the same if the bytes arrive in pieces.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/cli/command_line.h"
#include "fuzz/check_folded.h"
#include "stackfold/folded_counts.h"
#include "stackfold/formats/format.h"
#include "support/memory_input.h"
#include "support/string_output.h"

namespace pe::testing {

struct Folded {
  std::string text;
  std::size_t stacks = 0;
  std::uint64_t samples = 0, ignored_lines = 0;
  bool is_damaged = false;
  bool operator==(const Folded&) const = default;
};

inline Folded fold_input(const fold::Format& format, const fold::Options& options, Input input) {
  folded::FrameTable frames;
  folded::FoldedCounts counts(frames);
  const auto report = format.fold(input, options, counts);
  StringOutput out;
  counts.write(out);
  return {std::move(out.text), counts.size(), report.samples, report.ignored_lines,
          !report.damage.empty()};
}

/// `name` is a value of --from.  The options depend on the size of the input.
inline void fold_as(std::string_view name, std::string_view bytes) {
  fold::Options options;
  if (bytes.size() % 2 != 0) {
    options.marks = {.kernel = true, .jit = true, .inlined = true, .library = true};
    options.root = fold::RootName::kCommPidTid;
  }
  options.all_events = bytes.size() % 3 == 0;
  const fold::Format* const format = &find_choice("from", fold::formats(), name);
  format->looks_like(bytes);
  const Folded folded = fold_input(*format, options, memory_input(bytes));
  constexpr std::size_t kMostTypes = 64;  // of a pprof profile; each type has a stack of its own
  if (folded.stacks > (folded.samples + 1) * (options.all_events ? kMostTypes : 1))
    std::abort();
  check_folded(folded.text, folded.stacks);
  constexpr std::size_t kMostInPieces = 32 * 1024;
  if (bytes.size() <= kMostInPieces &&
      !(fold_input(*format, options, input_in_pieces(bytes)) == folded))
    std::abort();
}

}  // namespace pe::testing
