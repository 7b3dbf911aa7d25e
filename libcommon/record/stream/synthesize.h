// Converts /proc's information about processes to the records that the kernel would have written.
//
// Records of processes that were running before we started carry time 0, which readers interpret as
// "before everything"; perf does the same.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "record/stream/recorded_stream.h"
#include "stream/proc/maps.h"

namespace pe::record {

class Synthesizer {
 public:
  /// `stream` must outlive this.  `attr` is the attr of the events.  These records carry the same
  /// trailer, and build ids if it requests them.
  Synthesizer(RecordedStream& stream, const perf_event_attr& attr)
      : stream_(stream), sample_type_(attr.sample_type), with_build_ids_(attr.build_id != 0) {}

  /// Writes the kernel's own mapping, by which a reader knows whether it has the same kernel.
  void kernel();
  /// Writes COMM for each thread, MMAP2 for each executable mapping.
  void process(pid_t pid);

  /// Sets the time of all further records, initially 0.
  void set_time(std::uint64_t time_ns) noexcept { time_ns_ = time_ns; }
  /// Writes FORK or EXIT.
  void task(std::uint32_t type, const stream::TaskRecord& task);
  /// Writes COMM; `misc` is 0 or PERF_RECORD_MISC_COMM_EXEC.
  void comm(pid_t pid, pid_t tid, std::string_view comm, std::uint16_t misc = 0);
  /// Writes MMAP2 for each executable mapping for which `is_new` returns true.  Returns false if
  /// the process is gone, or we may not read it.
  bool mappings(pid_t pid, const std::function<bool(const stream::MapsLine&)>& is_new);
  /// Does the same with the text of a /proc/PID/maps; skips malformed lines.
  void mappings(pid_t pid, std::string_view text,
                const std::function<bool(const stream::MapsLine&)>& is_new);

  [[nodiscard]] const std::vector<pid_t>& unreadable_processes() const noexcept {
    return unreadable_;
  }

 private:
  void finish(std::uint32_t pid, std::uint32_t tid);
  void mapping(pid_t pid, const stream::MapsLine& map);
  const std::string& build_id_of(pid_t pid, const stream::MapsLine& map);
  void add_identity(std::string_view build_id, const stream::MapsLine& map);

  RecordedStream& stream_;
  std::uint64_t sample_type_;
  std::uint64_t time_ns_ = 0;
  bool with_build_ids_;
  using File = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  ///< device, inode
  std::map<File, std::string> build_ids_;
  stream::RecordBuilder builder_;
  std::vector<pid_t> unreadable_;
};

}  // namespace pe::record
