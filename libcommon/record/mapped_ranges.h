// Where in a process an address lies that its memory is read at, such as a thread's stack.
//
// Of thousands of threads each is asked for once, and each has two mappings: they are kept, for
// reading /proc/PID/maps takes 8 ms of 20,000 mappings, and holds up the process where it maps
// more.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "unwind/stacks/sample_unwinder.h"

namespace pe::record {

class MappedRanges {
 public:
  /// The mapping that holds `avma`, for unwind::UnwindOptions::stack_at; empty if there is none, or
  /// if it is newer than what was read and reading it again and again would take more than a tenth
  /// of the time. What is no more, or another program's after exec, can still be told: what is read
  /// there has to be compared with what is expected.
  unwind::MemoryRange at(std::uint32_t pid, std::uint64_t avma);

 private:
  using Clock = std::chrono::steady_clock;

  struct Process {
    std::vector<unwind::MemoryRange> ranges;  ///< by address
    Clock::time_point read_at;
    Clock::duration took;
    std::uint32_t times_read = 0;
  };

  static void read(std::uint32_t pid, Process& process);

  std::unordered_map<std::uint32_t, Process> processes_;
};

}  // namespace pe::record
