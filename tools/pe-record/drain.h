// From the rings to the stream, in the order of time.
//
// Each ring is ordered, all of them together are not.  A record older than the
// moment at which the last pass over the rings began has been seen by now, so a
// pass writes, sorted, what is older than that and keeps the rest for the next.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "perf/counter.h"
#include "perf/stream_writer.h"

namespace pe::record {

/// What passed, for the closing line.
struct Passed {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;       ///< records that the kernel dropped because a ring was full
  std::uint64_t throttled = 0;  ///< times that the kernel paused a counter
  std::unordered_set<std::uint32_t> threads;
};

class Drain {
 public:
  /// All events share `attr`'s layout.  `writer` must outlive this.
  Drain(perf::StreamWriter& writer, const perf_event_attr& attr) : writer_(writer), attr_(attr) {}

  /// One pass over the rings; FINISHED_ROUND stands between what two passes have written.
  void pass(std::vector<perf::Ring>& rings);
  /// The last pass: everything is written.
  void finish(std::vector<perf::Ring>& rings);

  [[nodiscard]] const Passed& passed() const noexcept { return passed_; }

 private:
  struct Pending {
    std::uint64_t time_ns;
    std::size_t offset;  ///< in bytes_
    std::size_t size;
  };

  void take(std::vector<perf::Ring>& rings);
  void count(const perf::Record& record);
  void write_until(std::uint64_t time_ns);

  perf::StreamWriter& writer_;
  perf_event_attr attr_;
  std::vector<std::byte> bytes_;
  std::vector<Pending> pending_;
  std::uint64_t last_pass_began_ns_ = 0;
  bool round_is_open_ = false;
  Passed passed_;
};

/// CLOCK_MONOTONIC, the clock of the samples.
std::uint64_t monotonic_ns();

}  // namespace pe::record
