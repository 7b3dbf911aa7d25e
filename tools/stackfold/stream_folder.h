// Converts a sample stream to folded stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stackfold/folded_counts.h"
#include "stackfold/frames.h"
#include "stackfold/options.h"
#include "stackfold/slow_calls.h"
#include "stackfold/stream_facts.h"
#include "stackfold/stream_stacks.h"

namespace pe::fold {

class StreamFolder {
 public:
  /// `input` and `counts` must outlive this.  Throws Error if the input is not a sample
  /// stream.
  StreamFolder(Input& input, const Options& options, folded::FoldedCounts& counts);

  /// Reads to the end and adds every stack to the counts.
  StreamReport fold();

 private:
  using Stacks = StreamStacks<Locations>;

  void take(const Stacks::Taken& taken);
  void add(const Stacks::Taken& taken);
  void observe(const stream::Record& record);
  void count(const StackCount& counted);
  [[nodiscard]] std::uint64_t weight_of(const Stacks::Taken& taken) const;

  Options options_;
  folded::FoldedCounts& counts_;
  folded::FoldedCounts in_ns_;  ///< sums in nanoseconds; the output has microseconds
  std::string unit_;            ///< of what was added first
  Locations locations_;
  Stacks stacks_;
  StreamFacts facts_;
  std::optional<SlowCalls> slow_calls_;
  std::vector<folded::FrameId> stack_;  ///< of the current sample, root first
};

}  // namespace pe::fold
