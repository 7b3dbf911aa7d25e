// Converts /proc's information about processes to the records that the kernel would have written.
//
// Records of processes that were running before we started carry time 0, which readers interpret as
// "before everything"; perf does the same.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/proc/maps.h"
#include "stream/script_mapping.h"
#include "stream/stream_writer.h"

namespace pe::recording {

class Synthesizer {
 public:
  /// Passes the records to `write`.  They have the trailer of events with `attr`, but no build ids
  /// (build_ids.h).
  Synthesizer(const perf_event_attr& attr, std::function<void(const stream::Record&)> write)
      : attr_(attr), write_(std::move(write)) {}

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
  /// Writes MMAP2 for each executable mapping for which `is_new` returns true.  Code that the
  /// program has made includes the memory that it has reserved behind it.  Returns false if the
  /// process is gone, or we may not read it.
  bool mappings(pid_t pid, const std::function<bool(const stream::MapsLine&)>& is_new);
  /// Does the same with the text of a /proc/PID/maps; skips malformed lines.
  void mappings(pid_t pid, std::string_view text,
                const std::function<bool(const stream::MapsLine&)>& is_new);

  /// Writes MMAP2 for a function of an interpreted program.
  void script(pid_t pid, std::uint32_t number, const stream::ScriptFunction& function);

  /// Returns the path that the record of a mapping has.
  static std::string path_of(const stream::MapsLine& map);

  [[nodiscard]] const std::vector<pid_t>& unreadable_processes() const noexcept {
    return unreadable_;
  }

 private:
  void finish(std::uint32_t pid, std::uint32_t tid);
  void mapping(pid_t pid, const stream::MapsLine& map);

  perf_event_attr attr_;
  std::function<void(const stream::Record&)> write_;
  std::uint64_t time_ns_ = 0;
  stream::RecordBuilder builder_;
  std::vector<pid_t> unreadable_;
};

}  // namespace pe::recording
