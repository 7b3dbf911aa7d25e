// What /proc knows of processes that were running before we began, as the
// records that the kernel would have written.
//
// They carry time 0, which readers take as "before everything"; perf does the same.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "pe-record/recorded_stream.h"

namespace pe::record {

class Synthesizer {
 public:
  /// `stream` must outlive this; `sample_type` is that of the events, whose trailer these records
  /// carry too.
  Synthesizer(RecordedStream& stream, std::uint64_t sample_type)
      : stream_(stream), sample_type_(sample_type) {}

  /// The kernel's own mapping, by which a reader knows whether it has the same kernel.
  void kernel();
  /// COMM for each thread, MMAP2 for each executable mapping.
  void process(pid_t pid);

  [[nodiscard]] std::uint64_t unreadable_processes() const noexcept { return unreadable_; }

 private:
  void finish(std::uint32_t pid, std::uint32_t tid);
  void comm(pid_t pid, pid_t tid, std::string_view comm);
  bool mappings(pid_t pid);

  RecordedStream& stream_;
  std::uint64_t sample_type_;
  perf::RecordBuilder builder_;
  std::uint64_t unreadable_ = 0;
};

}  // namespace pe::record
