// What all traced processes did, and what went wrong: the closing line.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "malloctrace/processes.h"

namespace pe::malloctrace {

/// Numbers of all processes together.
struct Summary {
  std::uint64_t programs = 0;  ///< those of a process that began another (exec) count each
  std::uint64_t processes = 0, running = 0;
  std::uint64_t allocated_bytes = 0, allocations = 0;
  std::uint64_t live_bytes = 0, live_blocks = 0, temporary = 0;
  std::uint64_t highest_peak_bytes = 0;  ///< of one program
  std::uint64_t peak_slack_bytes = 0;    ///< by how much that may be off
  std::uint64_t peak_excess_bytes = 0;   ///< by how much it may be too high, by sampling
  std::uint64_t peaks_bytes = 0;         ///< the sum of all programs' peaks
  std::uint64_t metadata_bytes = 0;      ///< what tracing took of memory, in and of them
  std::uint64_t walks = 0, frames_walked = 0, frames_reused = 0;
  bool is_estimated = false;  ///< by sampling

  // Of the program that had most resident.
  std::uint64_t resident_peak_bytes = 0;  ///< 0: not known
  std::uint64_t resident_heap_bytes = 0;  ///< its own peak
  std::uint64_t mapped_peak_bytes = 0;    ///< that it mapped itself, not by malloc
  bool is_python = false;

  // What could not be done, as heap::Header has it.
  std::uint64_t failed = 0, unknown_frees = 0, inherited_frees = 0, cut_stacks = 0;
  std::uint64_t incomplete_stacks = 0, dropped = 0, full = 0, early = 0;
  std::uint64_t damaged = 0;
  std::uint64_t vanished = 0;  ///< see Processes
  std::map<std::string, std::uint64_t> refused;

  void add(const HeapOfProcess& process);
};

/// "1200 allocations, 34567 bytes; peak 3000 bytes; 400 bytes in 3 blocks not freed".
std::string describe_use(const Summary& summary);
/// "resident set at most 33554432 bytes, malloc's peak is 7.5 % of that", where malloc saw little
/// of the memory; else empty.
std::string describe_resident(const Summary& summary);
/// "tracing took 204800 bytes, 3.1 % of the peak".
std::string describe_memory(const Summary& summary);
/// "3 stacks cut, 2 allocations failed", empty if there was nothing.
std::string describe_losses(const Summary& summary);

}  // namespace pe::malloctrace
