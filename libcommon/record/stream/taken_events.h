// The events that an engine outside of the kernel delivers, in order of time: its samples, and
// changes of threads.  taken_stream.h converts them to records and walks the stacks, whichever
// engine copied these.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace pe::record {

/// The part of a stack that fits into a record beside registers: a record's size has 16 bits.
inline constexpr std::size_t kMostTakenStack = 65'000;

/// A thread at one moment: its registers, and a copy of its stack.
struct TakenSample {
  pid_t pid = 0, tid = 0;
  std::uint32_t cpu = 0;
  std::uint64_t time_ns = 0;    ///< CLOCK_MONOTONIC
  std::uint64_t period_ns = 0;  ///< the thread's time that it represents
  bool is_64_bit = true;        ///< otherwise only the instruction's address is useful
  /// By DWARF number (System V ABI AMD64, figure 3.36); the last is the instruction's address.
  std::array<std::uint64_t, 17> registers = {};
  std::vector<std::byte> stack = {};  ///< from the stack pointer up, as far as it could be read
  bool is_cut = false;                ///< the stack continues beyond the copy
  std::string name = {};              ///< the thread's name at that time; empty: /proc may have it
};

/// A thread has started, ended, or executed another program.  With its first thread, a process has
/// done the same.
struct TaskChange {
  enum class Kind { kBegan, kEnded, kExec };
  Kind kind = Kind::kBegan;
  pid_t pid = 0, tid = 0;
  pid_t parent_pid = 0, parent_tid = 0;  ///< of kBegan: its creator
  std::uint64_t time_ns = 0;             ///< CLOCK_MONOTONIC
  /// Of kBegan and kExec, if the engine knows them from that time; empty: /proc may have them.
  std::string name = {};
  std::string maps = {};  ///< text of /proc/PID/maps, untrusted
};

using TakenEvent = std::variant<TakenSample, TaskChange>;

}  // namespace pe::record
