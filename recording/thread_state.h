// Reads the current state of a thread from /proc: whether it runs, how long it has run, and where
// it waits in the kernel.  Source: proc(5) for /proc/PID/task/TID/stat, schedstat and syscall;
// Documentation/scheduler/sched-stats.rst for schedstat's three numbers.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace pe::stream {

/// The numbers in schedstat.  While the thread runs, the kernel updates the first one in its timer
/// interrupt, every 1 to 10 ms.  While it does not run, all are exact.
struct ThreadTimes {
  std::uint64_t on_cpu_ns = 0;
  std::uint64_t waited_ns = 0;  ///< time in which it was ready to run, but had no CPU
  std::uint64_t times_run = 0;  ///< how often it received a CPU
};
/// Returns nullopt if the text is not three numbers.
std::optional<ThreadTimes> parse_schedstat(std::string_view text);

/// The fields of stat that we use.
struct ThreadState {
  char state = '?';       ///< R: runs, or waits for a CPU; S, D: sleeps; T, t: stopped …
  std::uint32_t cpu = 0;  ///< where it last ran
};
/// Returns nullopt if the text is too short.  A thread's name may contain any text, even ") R".
std::optional<ThreadState> parse_thread_stat(std::string_view text);

/// The registers in syscall, of a thread that is blocked in the kernel.
struct BlockedAt {
  std::uint64_t sp = 0, ip = 0;  ///< avma
};
/// Returns nullopt if the thread runs, or the text is malformed.
std::optional<BlockedAt> parse_blocked_at(std::string_view text);

/// Returns where a thread is blocked now; nullopt if it is not blocked, or we may not read that.
std::optional<BlockedAt> blocked_at(pid_t pid, pid_t tid);

/// Returns how much memory a process has mapped, in pages (statm).  The number changes with nearly
/// every change of the mappings.  Returns nullopt if the process is gone.
std::optional<std::uint64_t> mapped_pages(pid_t pid);

/// Keeps open the two files that are read often.
class ThreadFiles {
 public:
  /// Throws Error if too many files are open.  If the thread is gone, it opens no files.
  ThreadFiles(pid_t pid, pid_t tid);

  /// These return nullopt after the thread is gone.
  [[nodiscard]] std::optional<ThreadTimes> times() const;
  [[nodiscard]] std::optional<ThreadState> state() const;

 private:
  Fd schedstat_, stat_;
};

}  // namespace pe::stream

// Reads the CPU time that threads and processes have used, in nanoseconds, as the kernel counts it.

namespace pe::recording {

/// Returns the CPU time of a thread (/proc/TID/schedstat); nullopt if it is gone.
std::optional<std::uint64_t> thread_cpu_ns(pid_t tid);

/// Returns the CPU time of a process or zombie, including its ended threads; nullopt if it is gone.
std::optional<std::uint64_t> process_cpu_ns(pid_t pid);

/// Returns the CPU time of the children that a process has waited for, and of those that these had.
/// It is rounded down to 10 ms; 0 if the process is gone.
std::uint64_t children_cpu_ns(pid_t pid);

/// Returns the same for this process, not rounded.
std::uint64_t ended_children_cpu_ns();

/// Returns the time in which the host of this virtual machine ran something else, summed over all
/// CPUs.  It counts from the start of the machine, rounded down to 10 ms (steal in /proc/stat,
/// proc(5)).  It is 0 if the host does not report it.
std::uint64_t stolen_cpu_ns();

}  // namespace pe::recording
