// What an engine outside of the kernel hands over, in order of time: samples as it has taken them,
// and what became of threads.  taken_stream.h makes records of it and walks the stacks, whoever has
// copied them.
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

/// Of a stack, what fits into a record beside registers: its size has 16 bits.
inline constexpr std::size_t kMostTakenStack = 65'000;

/// A thread as it stood: its registers, and a copy of its stack.
struct TakenSample {
  pid_t pid = 0, tid = 0;
  std::uint32_t cpu = 0;
  std::uint64_t time_ns = 0;    ///< CLOCK_MONOTONIC
  std::uint64_t period_ns = 0;  ///< how much of the thread's time it stands for
  bool is_64_bit = true;        ///< else only the instruction's address is of use
  /// By DWARF number (System V ABI AMD64, figure 3.36); the last is the instruction's address.
  std::array<std::uint64_t, 17> registers = {};
  std::vector<std::byte> stack = {};  ///< from the stack pointer up, as far as it could be read
  bool is_cut = false;                ///< it goes on behind that, which was not copied
  std::string name = {};              ///< the thread's at that time; empty: /proc may know
};

/// A thread, or with its first one a process, has begun, ended, or become another program.
struct TaskChange {
  enum class Kind { kBegan, kEnded, kExec };
  Kind kind = Kind::kBegan;
  pid_t pid = 0, tid = 0;
  pid_t parent_pid = 0, parent_tid = 0;  ///< of kBegan: who made it
  std::uint64_t time_ns = 0;             ///< CLOCK_MONOTONIC
  /// Of kBegan and kExec, of whoever knows them from that time; empty: /proc may know.
  std::string name = {};
  std::string maps = {};  ///< text of /proc/PID/maps, untrusted
};

using TakenEvent = std::variant<TakenSample, TaskChange>;

}  // namespace pe::record
