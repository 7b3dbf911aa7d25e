// Finds the mapping of an address at which a process's memory is read, such as a thread's stack.
//
// Each of thousands of threads is looked up once, and each has two mappings.  The ranges are
// cached, because reading /proc/PID/maps takes 8 ms for 20,000 mappings.  It also blocks the
// process when that maps more.
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {

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
