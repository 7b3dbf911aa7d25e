// The closing lines: the allocations of all traced processes, and the failures.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/cli/closing.h"
#include "malloctrace/processes.h"

namespace pe::malloctrace {

/// Numbers for all processes together.
struct Summary {
  std::uint64_t programs = 0;  ///< each program of a process that started another (exec) counts
  std::uint64_t processes = 0, running = 0;
  std::uint64_t allocated_bytes = 0, allocations = 0;
  std::uint64_t live_bytes = 0, live_blocks = 0, temporary = 0;
  std::uint64_t highest_peak_bytes = 0;  ///< of one program
  std::uint64_t peak_slack_bytes = 0;    ///< how far off that may be
  std::uint64_t peak_excess_bytes = 0;   ///< by how much sampling may make it too high
  std::uint64_t peaks_bytes = 0;         ///< the sum of all programs' peaks
  std::uint64_t metadata_bytes = 0;      ///< memory that tracing used, shared and in the processes
  std::uint64_t walks = 0, frames_walked = 0, frames_reused = 0;
  bool is_estimated = false;  ///< by sampling

  // About the program with the largest resident set.
  std::uint64_t resident_peak_bytes = 0;  ///< 0: not known
  std::uint64_t resident_heap_bytes = 0;  ///< its own peak
  std::uint64_t mapped_peak_bytes = 0;    ///< mapped by the program itself, not by malloc
  bool is_python = false;

  // Failures, as in heap::Header.
  std::uint64_t failed = 0, unknown_frees = 0, inherited_frees = 0, cut_stacks = 0;
  std::uint64_t incomplete_stacks = 0, dropped = 0, full = 0, early = 0;
  std::uint64_t closed = 0;  ///< processes whose tracing ended early
  std::uint64_t damaged = 0;
  std::uint64_t vanished = 0;  ///< see Processes
  std::map<std::string, std::uint64_t> refused;

  void add(const HeapOfProcess& process);
};

/// Returns "1200 allocations in 2.50 s, 34567 bytes, peak 3000 bytes, 400 bytes in 3 blocks not
/// freed".  `length` is that of the recording.
std::string describe_use(const Summary& summary, std::string_view length);
/// Returns "1 process (2 programs)".
std::string describe_processes(const Summary& summary);
/// Returns "tracing needed 204800 bytes of memory, 3.1 % of the peak".
std::string describe_memory(const Summary& summary);
/// Adds "resident set at most 33554432 bytes, of which malloc's peak is 7.5 %", if malloc's share
/// is small.
void add_resident(const Summary& summary, Closing& closing);
/// Adds what failed, and what was not counted.
void add_losses(const Summary& summary, Closing& closing);

}  // namespace pe::malloctrace
