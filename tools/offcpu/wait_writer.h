// Waits into the sample stream: a sample each, whose period is how long it was, in nanoseconds.
//
// Threads that hand work to each other wait hundreds of thousands of times a second, in few places.
// What a thread waits in one place within 10 ms is one sample, so that the tools behind keep up.
// Its time is the end of these 10 ms, or earlier where something changes that names depend on.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "offcpu/wait_tracker.h"
#include "perf/stream_writer.h"

namespace pe::offcpu {

/// The layout of samples and trailers that WaitWriter writes: of `recorded`, as its event has it.
perf_event_attr wait_attr(const perf_event_attr& recorded);

class WaitWriter {
 public:
  /// `writer` must outlive this; `id` is the event's.
  WaitWriter(perf::StreamWriter& writer, std::uint64_t id) : writer_(writer), id_(id) {}

  void add(const Wait& wait);
  /// Time has come to `now_ns`: writes what is older than 10 ms.
  void reach(std::uint64_t now_ns);
  /// Writes all.
  void flush(std::uint64_t now_ns);

 private:
  struct Waits {
    std::uint32_t pid, tid, cpu;
    std::uint16_t misc;
    std::uint64_t ip, total_ns;
    std::size_t chain_begin, chain_size;  ///< in chains_
  };

  [[nodiscard]] bool is_same(const Waits& waits, const Wait& wait, std::uint16_t misc) const;
  void write(const Waits& waits, std::uint64_t time_ns);

  perf::StreamWriter& writer_;
  std::uint64_t id_;
  perf::RecordBuilder builder_;
  std::uint64_t until_ns_ = 0;  ///< the end of the 10 ms; 0: nothing is held
  std::vector<Waits> held_;     ///< in the order in which they came
  std::vector<std::uint64_t> chains_;
  boost::unordered_flat_map<std::uint64_t, std::size_t> index_by_hash_;  ///< into held_
};

}  // namespace pe::offcpu
