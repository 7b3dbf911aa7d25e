// Writes samples of an engine outside of the kernel into the stream.  They are laid out like the
// kernel's, so that all later steps are the same.  From /proc it also writes the records about
// processes that the kernel would have written.
//
// If the engine does not know a process's mappings, they are read from /proc.  They are read again
// after an exec, and after kRereadNs.  They are also read again if their total size has changed, as
// when a library is loaded.  Another reason is a sample's instruction outside of all known
// mappings.  That takes at most a twentieth of the time.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "record/engines/counters.h"
#include "record/stream/drain.h"
#include "record/stream/recorded_stream.h"
#include "record/stream/synthesize.h"
#include "record/stream/taken_queue.h"

namespace pe::record {

/// Returns the event of such samples, for write_head().  Adds a line to `notes` for each difference
/// from the request.
OpenedEvent taken_event(const Request& request, std::vector<std::string>& notes);

class TakenStream {
 public:
  /// All arguments must outlive this; `stream` is the stream of `event`.
  TakenStream(RecordedStream& stream, const OpenedEvent& event, TakenQueue& queue)
      : stream_(stream), event_(event), queue_(queue), synthesizer_(stream, event.attr) {}

  /// Writes the events in the queue.
  void pass();

  [[nodiscard]] const Passed& passed() const noexcept { return passed_; }

 private:
  struct Process {
    /// Start, end, offset in the file, device, inode.
    using Map =
        std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
    std::set<Map> maps;
    std::uint64_t pages = 0;         ///< mapped in all, at the last read
    std::uint64_t read_ns = 0;       ///< the time of the last read
    std::uint64_t next_read_ns = 0;  ///< the earliest time of the next read
  };
  /// Adds a mapping to `now`.  Returns whether `process` does not have it yet.
  static bool note_map(const stream::MapsLine& map, const Process& process,
                       std::set<Process::Map>& now);
  void begin_process(const TaskChange& change);
  struct ThreadName {
    std::string name;
    std::uint64_t read_ns = 0;
  };

  void write(const TakenSample& sample);
  void write(const TaskChange& change);
  void follow_name(const TakenSample& sample);
  void take_name(pid_t pid, pid_t tid, const std::string& name, std::uint16_t misc = 0);
  void take_maps(pid_t pid, Process& process, const std::string& text);
  void follow_maps(pid_t pid, std::uint64_t ip);
  void read_maps(pid_t pid, Process& process);
  void write_record(const TakenSample& sample);

  RecordedStream& stream_;
  const OpenedEvent& event_;
  TakenQueue& queue_;
  Synthesizer synthesizer_;
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_map<pid_t, ThreadName> names_;  ///< by tid
  std::vector<TakenEvent> events_;
  std::size_t at_ = 0;  ///< the event that is being written
  std::vector<std::byte> behind_;
  stream::RecordBuilder builder_;
  bool round_is_open_ = false;
  std::uint64_t last_flush_ns_ = 0;
  Passed passed_;
};

}  // namespace pe::record
