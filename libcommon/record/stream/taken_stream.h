// Samples that an engine outside of the kernel has taken, on their way into the stream: laid out as
// the kernel's are, so that all that comes after is the same; and what the kernel would have told
// of processes, from /proc.
//
// What a process has mapped, if whoever took the samples did not know, is read again when the size
// of it all has changed (which loading a library does), when it becomes another program, when a
// sample's instruction lies outside of everything known, and else every kRereadNs.  That takes a
// twentieth of the time at most.
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

/// The event that such samples are of, for write_head(); `notes` gets a line where something is
/// done differently from what was asked.
OpenedEvent taken_event(const Request& request, std::vector<std::string>& notes);

class TakenStream {
 public:
  /// `stream`, of `event`, must outlive this, and so must `queue`.
  TakenStream(RecordedStream& stream, const OpenedEvent& event, TakenQueue& queue)
      : stream_(stream), event_(event), queue_(queue), synthesizer_(stream, event.attr) {}

  /// Writes what is in the queue.
  void pass();

  [[nodiscard]] const Passed& passed() const noexcept { return passed_; }

 private:
  struct Process {
    /// Start, end, offset in the file, device, inode.
    using Map =
        std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
    std::set<Map> maps;
    std::uint64_t pages = 0;         ///< mapped in all, when they were read
    std::uint64_t read_ns = 0;       ///< when that was
    std::uint64_t next_read_ns = 0;  ///< not before
  };
  /// Notes a mapping in `now`; whether it is not among those of `process`.
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
  std::size_t at_ = 0;  ///< the one that is being written
  std::vector<std::byte> behind_;
  stream::RecordBuilder builder_;
  bool round_is_open_ = false;
  std::uint64_t last_flush_ns_ = 0;
  Passed passed_;
};

}  // namespace pe::record
