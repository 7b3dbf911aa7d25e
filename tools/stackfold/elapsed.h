// Divides the time of the clock among stacks: --weight elapsed.
//
// While k threads of the target run, a sample of one of them represents 1/k of its period.  While
// none runs, the time belongs to the wait whose end ended that.  Samples are an estimate, but the
// times in which no thread ran are measured: so the samples' weights are scaled to the rest of the
// recording, and all counts add up to its time exactly.
//
// Source: tools/perf/Documentation/cpu-and-latency-overheads.txt, for the samples' weights.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "stackfold/folded_counts.h"

namespace pe::fold {

class ElapsedTime {
 public:
  /// `frames` must outlive this.
  explicit ElapsedTime(folded::FrameTable& frames)
      : frames_(frames), running_(frames), silent_(frames) {}

  /// Adds a sample of a thread while `running` threads ran; 0 for 1.
  void add_running(std::span<const folded::FrameId> stack, std::uint64_t period_ns,
                   std::uint64_t running);
  /// Adds a time in which no thread ran.
  void add_silence(std::span<const folded::FrameId> stack, std::uint64_t ns);
  /// The recording took that long.
  void set_whole(std::uint64_t ns) noexcept { whole_ns_ = ns; }
  /// Is the time of the recording known?
  [[nodiscard]] bool is_whole() const noexcept { return whole_ns_ > 0; }

  /// Adds the stacks with their microseconds to `counts`, which shares the frame table.
  void add_to(folded::FoldedCounts& counts) const;

 private:
  folded::FrameTable& frames_;
  folded::FoldedCounts running_, silent_;  ///< in nanoseconds
  std::uint64_t whole_ns_ = 0;
};

}  // namespace pe::fold
