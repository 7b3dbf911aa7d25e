// Limits what the mappings of recorded processes cost: memory, and time to copy them at forks.
//
// The kernel reports neither that memory is unmapped nor that the last thread of a process has
// ended.  So a process's mappings are forgotten a second after its first thread has ended, unless
// the process still exists.  Names of files stay.
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "stream/history.h"
#include "stream/records/record.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {

class MappedBytes {
 public:
  /// `budget` and `history` must outlive this.
  MappedBytes(Budget& budget, stream::History& history) : budget_(budget), history_(history) {}

  /// Returns whether the process of the record can pay for it.  All but mappings of code are free.
  bool may_apply(const stream::Record& record);
  /// Applies the record to the history.
  void apply(const stream::Record& record, std::uint64_t time_ns);
  /// Makes the history forget a process that has ended long enough before `time_ns`, and returns
  /// true.  To be called until it returns false.
  bool forget_ended(std::uint64_t time_ns);

 private:
  [[nodiscard]] std::size_t mappings_of(std::uint32_t pid) const;

  struct Ended {
    std::uint32_t pid;
    std::uint64_t time_ns;
  };
  Budget& budget_;
  stream::History& history_;
  std::unordered_map<std::uint32_t, KeptBytes> kept_;  ///< by pid
  std::deque<Ended> ended_;                            ///< those in kept_, in order of time
};

// Finds the mapping of an address at which a process's memory is read, such as a thread's stack.
//
// Each of thousands of threads is looked up once, and each has two mappings.  The ranges are
// cached, because reading /proc/PID/maps takes 8 ms for 20,000 mappings.  It also blocks the
// process when that maps more.

class MappedRanges {
 public:
  /// Returns the mapping that holds `avma`, for unwind::UnwindOptions::stack_at; empty if there is
  /// none.  It is also empty if the mapping is newer than the cached ones, and more reading would
  /// take more than a tenth of the time.  The result may be outdated: the mapping is gone, or
  /// belongs to another program after exec.  So callers must compare the memory that they read with
  /// the expected memory.
  unwind::MemoryRange at(std::uint32_t pid, std::uint64_t avma);

 private:
  using Clock = std::chrono::steady_clock;

  struct Process {
    std::vector<unwind::MemoryRange> ranges;  ///< sorted by address
    Clock::time_point read_at;
    Clock::duration took;
    std::uint32_t times_read = 0;
  };

  static void read(std::uint32_t pid, Process& process);

  std::unordered_map<std::uint32_t, Process> processes_;
};

}  // namespace pe::recording
