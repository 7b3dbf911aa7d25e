// The process of the recorder: its privileges, priority, threads and cost.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace pe::recording {

/// Drops the capabilities that a recorder does not need once everything is open, whatever data it
/// reads later.  It keeps those to read processes and their files, and to signal its command.  With
/// `uses_bpf` it also keeps those to give programs in the kernel more tables.  The others are lost
/// for good, for this thread and those that it starts; execve(2) cannot restore them.  Throws
/// Error.
void keep_rights_to_record(bool uses_bpf);

/// Tests whether perf_event_open(2) works at all, with a counter of our own time in user space.
/// Returns 0 or errno.
int try_own_counter();

/// Returns the seccomp mode of this process: 0 none, 1 strict, 2 a filter.
int seccomp_mode();

// How soon threads of the recorder run, beside many others that want the CPU.
//
// With 50 busy threads for each CPU, a recorder without precedence gets 2 % of it, and loses what
// the rings cannot hold.

/// Gives the calling thread precedence over others, as far as permitted (CAP_SYS_NICE, ulimit -e).
/// Threads and processes that it starts later inherit that.  Does nothing if the user has set
/// another one (nice(1), chrt(1)).
void run_before_others();
/// Takes that away again from the calling thread, for work that can wait.
void run_among_others();

// Starts threads of the recorder.

/// Starts a thread; `run` must not throw.  Throws Error if memory is short, or there are too many
/// threads.
template <typename Run>
std::thread start_thread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    throw_errno("a thread of our own (ulimit -u, -v)", error.code().value());
  }
}

// Measures the CPU time of the recorder itself.

/// Returns the CPU time of this process since its start, user and system, in seconds.
double own_cpu_seconds();

class OwnCost {
 public:
  /// The recording starts, or ends, at this time (CLOCK_MONOTONIC, in nanoseconds).
  void begin_wall(std::uint64_t now_ns) noexcept { began_ns_ = now_ns; }
  void end_wall(std::uint64_t now_ns) noexcept;
  /// Returns the length of the recording in seconds.
  [[nodiscard]] double wall_seconds() const;
  /// Describes the cost so far: "own CPU 0.031 s, 0.31 % of 10.00 s".
  [[nodiscard]] std::string describe() const;
  /// Returns the length of the recording: "10.00 s".
  [[nodiscard]] std::string describe_length() const;
  /// Returns the cost as a share of a CPU in percent: "0.31"; empty if the recording was so short
  /// that the share means nothing.
  [[nodiscard]] std::string percent() const;
  /// Describes the cost since the end of the recording: "0.012 s of CPU after the end".
  [[nodiscard]] std::string describe_rest() const;

 private:
  double cpu_at_end_ = 0;  ///< seconds
  std::uint64_t began_ns_ = 0, ended_ns_ = 0;
};

}  // namespace pe::recording
