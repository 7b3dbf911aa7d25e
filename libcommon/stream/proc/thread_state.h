// What /proc says of a thread at this moment: whether it runs, how long it has run, and where it
// waits in the kernel (proc(5): /proc/PID/task/TID/stat, schedstat, syscall; schedstat's three
// numbers: Documentation/scheduler/sched-stats.rst).
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace pe::stream {

/// Of schedstat.  While the thread runs, the kernel brings the first up to date with its timer
/// interrupt, every 1 to 10 ms; once it does not, all are exact.
struct ThreadTimes {
  std::uint64_t on_cpu_ns = 0;
  std::uint64_t waited_ns = 0;  ///< ready to run, and without a CPU
  std::uint64_t times_run = 0;  ///< how often it was given a CPU
};
/// nullopt if the text is not three numbers.
std::optional<ThreadTimes> parse_schedstat(std::string_view text);

/// Of stat.
struct ThreadState {
  char state = '?';       ///< R: runs, or waits for a CPU; S, D: sleeps; T, t: stopped …
  std::uint32_t cpu = 0;  ///< where it last ran
};
/// nullopt if the text is too short.  A thread's name may hold anything, also ") R".
std::optional<ThreadState> parse_thread_stat(std::string_view text);

/// Of syscall: the registers of a thread that is blocked in the kernel.
struct BlockedAt {
  std::uint64_t sp = 0, ip = 0;  ///< avma
};
/// nullopt if the thread runs, or the text is no such line.
std::optional<BlockedAt> parse_blocked_at(std::string_view text);

/// Where a thread is blocked now; nullopt if it is not, or may not be seen.
std::optional<BlockedAt> blocked_at(pid_t pid, pid_t tid);

/// How much a process has mapped, in pages (statm): it changes with nearly every change of what is
/// mapped.  nullopt if the process is gone.
std::optional<std::uint64_t> mapped_pages(pid_t pid);

/// The two files that are read often, kept open.
class ThreadFiles {
 public:
  /// Throws Error if there are too many open files; a thread that is gone has no files.
  ThreadFiles(pid_t pid, pid_t tid);

  /// nullopt once the thread is gone.
  [[nodiscard]] std::optional<ThreadTimes> times() const;
  [[nodiscard]] std::optional<ThreadState> state() const;

 private:
  Fd schedstat_, stat_;
};

}  // namespace pe::stream
