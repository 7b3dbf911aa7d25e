// The closing line: the allocations of all traced processes, and the failures.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>

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
  std::uint64_t damaged = 0;
  std::uint64_t vanished = 0;  ///< see Processes
  std::map<std::string, std::uint64_t> refused;

  void add(const HeapOfProcess& process);
};

/// "1200 allocations, 34567 bytes; peak 3000 bytes; 400 bytes in 3 blocks not freed".
std::string describe_use(const Summary& summary);
/// "resident set at most 33554432 bytes: malloc's peak is 7.5 % of that", if malloc's share is
/// small; else empty.
std::string describe_resident(const Summary& summary);
/// "tracing took 204800 bytes, 3.1 % of the peak".
std::string describe_memory(const Summary& summary);
/// "2 allocations failed, 3 stacks cut", empty if there was nothing.
std::string describe_losses(const Summary& summary);

}  // namespace pe::malloctrace
