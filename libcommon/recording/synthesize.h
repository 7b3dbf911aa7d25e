// What /proc knows of processes that were running before we began, as the
// records that the kernel would have written.
//
// They carry time 0, which readers take as "before everything"; perf does the same.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "proc/maps.h"
#include "recording/recorded_stream.h"

namespace pe::recording {

class Synthesizer {
 public:
  /// `stream` must outlive this; `attr` is that of the events, whose trailer these records carry
  /// too, and build ids where it asks for them.
  Synthesizer(RecordedStream& stream, const perf_event_attr& attr)
      : stream_(stream), sample_type_(attr.sample_type), with_build_ids_(attr.build_id != 0) {}

  /// The kernel's own mapping, by which a reader knows whether it has the same kernel.
  void kernel();
  /// COMM for each thread, MMAP2 for each executable mapping.
  void process(pid_t pid);

  [[nodiscard]] const std::vector<pid_t>& unreadable_processes() const noexcept {
    return unreadable_;
  }

 private:
  void finish(std::uint32_t pid, std::uint32_t tid);
  void comm(pid_t pid, pid_t tid, std::string_view comm);
  bool mappings(pid_t pid);
  void mapping(pid_t pid, const proc::MapsLine& map);
  const std::string& build_id_of(pid_t pid, const proc::MapsLine& map);
  void add_identity(std::string_view build_id, const proc::MapsLine& map);

  RecordedStream& stream_;
  std::uint64_t sample_type_;
  bool with_build_ids_;
  using File = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  ///< device, inode
  std::map<File, std::string> build_ids_;
  perf::RecordBuilder builder_;
  std::vector<pid_t> unreadable_;
};

}  // namespace pe::recording
