// What is known of the recorded processes, to be repeated at the start of each segment.
//
// The records themselves are kept, and written again with time 0: "before everything".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stream/records/record.h"

namespace pe::recording {

class SegmentState {
 public:
  /// Follows a record that is not a sample, in order of time.
  void follow(const stream::Record& record);
  /// Forgets processes that are gone: the record of a thread's end may be lost.
  void forget_ended();

  /// Appends the records that describe the recording, with its clock as it is now.
  void append_recording(std::string& out) const;
  /// Appends the records that describe the processes.
  void append_processes(std::string& out) const;

  /// Returns the time of the first of these records that has one.
  [[nodiscard]] std::optional<std::uint64_t> first_time(std::string_view records) const;

  /// Returns a record of that many lost samples (PERF_RECORD_LOST).
  [[nodiscard]] std::string lost(std::uint64_t samples, std::uint64_t time_ns) const;

  /// Returns how many mappings were forgotten because there were too many: names of code there are
  /// missing in later segments.
  [[nodiscard]] std::uint64_t forgotten() const noexcept { return forgotten_; }

  /// The most bytes that the mappings of a process, and those of all, may have.
  static constexpr std::size_t kMostBytesOfOne = std::size_t{16} << 20;
  static constexpr std::size_t kMostBytes = std::size_t{48} << 20;

 private:
  using Kept = std::shared_ptr<const std::string>;

  struct Mapping {
    std::uint64_t start = 0, end = 0;  ///< avma
    Kept record;
  };
  /// The mappings of a process in the order in which it made them, by their place in it.
  struct Mappings {
    std::map<std::uint64_t, Mapping> by_place;
    std::multimap<std::uint64_t, std::uint64_t> places;  ///< by start
    std::size_t bytes = 0;
  };
  struct Process {
    std::shared_ptr<Mappings> mappings;   ///< a child shares those of its parent until one changes
    std::map<std::uint32_t, Kept> names;  ///< by tid: the last COMM record
    Kept command_line;                    ///< the last COMM record that has one
    Kept next_command_line;               ///< the same of the program that will be executed
    std::uint32_t parent = 0;             ///< of a FORK record; 0: unknown
  };

  void follow_mapping(const stream::Record& record);
  void follow_name(const stream::Record& record);
  void follow_fork(const stream::Record& record);
  void follow_end(const stream::Record& record);
  Mappings& writable(Process& process);
  void drop(Mappings& mappings, std::uint64_t place);
  void limit(Mappings& mappings);
  void forget_mappings(Process& process);
  void forget(std::map<std::uint32_t, Process>::iterator process);
  [[nodiscard]] Kept without_time(const stream::Record& record) const;

  std::string recording_;  ///< HEADER_ATTR and others
  std::string kernel_;     ///< its mappings
  perf_event_attr layout_{};
  std::uint64_t id_ = 0;  ///< of the first event
  std::map<std::uint32_t, Process> processes_;
  std::uint64_t places_ = 0;
  std::size_t bytes_ = 0;  ///< of the mappings of all processes, shared ones counted once
  std::uint64_t forgotten_ = 0;
};

}  // namespace pe::recording
