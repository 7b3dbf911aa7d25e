// The heap of processes as a sample stream: one sample for each site and event.  Its period is the
// weight.
//
// There are five events: alloc-bytes, alloc-count, live-bytes, peak-bytes, temporary; see
// malloctrace(1).  All records of a process have the same time, that at which it was read.  The
// order of the records shows when they are valid.  A site follows the mappings that its stack uses,
// and precedes mappings that have replaced them since.  If a mapping has come back, it is written
// again.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "malloctrace/processes.h"
#include "stream/stream_writer.h"

namespace pe::malloctrace {

class HeapStream {
 public:
  /// Starts the stream.  `out` must outlive this.
  explicit HeapStream(Output& out);

  /// `time_ns` is when the process was read (CLOCK_MONOTONIC).  Times must not decrease: an earlier
  /// one becomes that of the previous process.
  void add(const HeapOfProcess& process, std::uint64_t time_ns);
  /// Ends the stream.
  void finish();

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// Stacks with more frames than a record holds.
  [[nodiscard]] std::uint64_t cut_stacks() const noexcept { return cut_stacks_; }

 private:
  void write_comm(const HeapOfProcess& process);
  void write_map(std::uint32_t pid, const heap::Module& module);
  void map_frames(const HeapOfProcess& process);
  void write_unmapped_code(const HeapOfProcess& process);
  void write_site(const HeapOfProcess& process, const heap::Site& site);
  void finish_record(std::uint32_t pid);
  void write_record();

  stream::StreamWriter writer_;
  perf_event_attr attr_;
  stream::RecordBuilder builder_;
  std::vector<heap::Frame> frames_;
  std::vector<std::uint64_t> chain_;
  /// The modules that the stream shows as mapped, by start.
  std::map<std::uint64_t, const heap::Module*> mapped_;
  bool has_overlaps_ = false;  ///< some modules of the process were at the same addresses
  std::uint64_t time_ns_ = 0;
  std::size_t round_bytes_ = 0;  ///< written since the last FINISHED_ROUND
  std::uint64_t samples_ = 0, cut_stacks_ = 0;
};

}  // namespace pe::malloctrace
