// The heap of processes as a sample stream: a sample for each site and event, whose period is the
// weight.
//
// Five events: alloc-bytes, alloc-count, live-bytes, peak-bytes, temporary; see malloctrace(1).
// Nothing has a time: records stand in the order in which they hold.  A site comes behind the
// mappings that its stack lies in, and before those that have taken their places since; where one
// has come back, it is told again.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "malloctrace/processes.h"
#include "stream/stream_writer.h"

namespace pe::malloctrace {

class HeapStream {
 public:
  /// Begins the stream.  `out` must outlive this.
  explicit HeapStream(Output& out);

  void add(const HeapOfProcess& process);
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

  stream::StreamWriter writer_;
  stream::RecordBuilder builder_;
  std::vector<heap::Frame> frames_;
  std::vector<std::uint64_t> chain_;
  /// What the stream says is mapped, by start.
  std::map<std::uint64_t, const heap::Module*> mapped_;
  bool has_overlaps_ = false;  ///< modules of the process have been at the same addresses
  std::uint64_t samples_ = 0, cut_stacks_ = 0;
};

}  // namespace pe::malloctrace
