// Divides the time of the clock among stacks: --weight elapsed.
//
// While k threads of the target run, a sample of one of them represents 1/k of its period.  While
// none runs, the time belongs to the wait whose end ended that.  Samples are an estimate, but the
// times in which no thread ran are measured: so the samples' weights are scaled to the rest of the
// recording, and all counts add up to its time exactly.
//
// Divided into steps of time, a sample covers its part of the time before it.  Each step has a
// little more or less than its length, by chance of the samples, but the sums of all are exact.
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
      : running_(frames),
        silent_(frames),
        unsampled_(frames.intern("[ran, but was not sampled]")) {}

  /// Divides the time into steps; to be called first.
  void divide(std::uint64_t step_ns);
  /// As FoldedCounts::note_time().
  void note_time(std::uint64_t begin_ns, std::uint64_t end_ns);
  /// A time on the clock: how long it was, and when it ended, which was noted.
  struct Part {
    std::uint64_t ns, end_ns = 0;
  };
  /// Adds a sample of a thread while `running` threads ran; 0 for 1.
  void add_running(std::span<const folded::FrameId> stack, Part period, std::uint64_t running);
  /// Adds a time in which no thread ran.
  void add_silence(std::span<const folded::FrameId> stack, Part part);
  /// The recording took that long.
  void set_whole(Part whole) noexcept { whole_ = whole; }
  /// Is the time of the recording known?
  [[nodiscard]] bool is_whole() const noexcept { return whole_.ns > 0; }

  /// Adds the stacks with their microseconds to `counts`, which shares the frame table, and the
  /// steps of time.  In steps, microseconds have decimals.
  void add_to(folded::FoldedCounts& counts);

 private:
  void add_steps_to(folded::FoldedCounts& counts);

  folded::FoldedCounts running_, silent_;  ///< in nanoseconds
  folded::FrameId unsampled_;
  std::uint64_t step_ns_ = 0;
  Part whole_{.ns = 0};
};

}  // namespace pe::fold
