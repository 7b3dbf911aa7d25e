// Reads /proc/PID/maps and other files in /proc about a process (proc(5)).
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stream/proc/maps_line.h"

namespace pe::stream {

/// Returns a path as it is in the file system, see for_each_path_part().
std::string unescape_path(std::string_view path);

/// Returns the text of /proc/PID/maps, also if the process's first thread has ended; nullopt if the
/// process is gone or we may not read it.
std::optional<std::string> maps_of(pid_t pid);
/// Calls `on_map` for each line of such a text; skips malformed ones.
void for_each_mapping(std::string_view text, const std::function<void(const MapsLine&)>& on_map);
/// Calls `on_map` for each mapping of a process.  Returns false if there is no text.
bool for_each_mapping(pid_t pid, const std::function<void(const MapsLine&)>& on_map);

/// Returns a thread of the process that has its memory and its files: `pid`, or another one if the
/// first thread has ended (pthread_exit(3) in main).  /proc/TID then has the links exe and root,
/// the memory and the namespaces that /proc/PID has no more.
pid_t live_thread_of(pid_t pid);

/// Returns the threads of a process, in ascending order; empty if it is gone.
std::vector<pid_t> threads_of(pid_t pid);

/// Returns the children that a process's first thread has started and not yet waited for; empty if
/// the kernel does not list them (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children_of(pid_t pid);

/// Returns the children of these processes and all further descendants, without the processes
/// themselves.  A process whose parent has ended is not found.
std::vector<pid_t> descendants_of(const std::vector<pid_t>& processes);

/// Returns the processes whose name (/proc/PID/comm, 15 bytes at most) or program file has this
/// name.  Zombies do not count.
std::vector<pid_t> processes_named(std::string_view name);

/// Returns every process, in ascending order.
std::vector<pid_t> all_processes();

/// Returns the name of a thread (prctl(2), PR_SET_NAME); nullopt if it is gone.
std::optional<std::string> comm_of(pid_t pid, pid_t tid);

/// What /proc/PID/stat says about a process.
struct ProcessStat {
  std::string comm;
  pid_t parent_pid = 0;
  std::uint64_t start_ns = 0;  ///< CLOCK_MONOTONIC, up to a tick (10 ms) too early
  /// Where the program's code starts, and the first thread's stack (avma); 0: not readable. Another
  /// program of the process (exec) has others.
  std::uint64_t code_start = 0, stack_start = 0;
};
/// Returns nullopt if the process is gone.
std::optional<ProcessStat> stat_of(pid_t pid);

/// The state of a thread in /proc/TID/status.
struct ThreadStatus {
  pid_t pid = 0;  ///< its process (Tgid)
  pid_t parent_pid = 0;
  pid_t pid_in_namespace = 0;  ///< its process, in its own pid namespace (NStgid, last number)
  uid_t effective_uid = 0;
  char state = '?';      ///< R, S, D, T, t, Z, X …
  pid_t tracer_pid = 0;  ///< the process that traces it (ptrace(2)); 0: none
  bool has_memory =
      true;  ///< false for a kernel thread or a zombie, which has no memory of its own
  // In these sets, bit N - 1 is signal N, and bit N is capability N.
  std::uint64_t pending_signals = 0, blocked_signals = 0;  ///< of this thread, not its process
  std::uint64_t process_signals = 0;  ///< pending for any thread of its process
  std::uint64_t effective_capabilities = 0;
  /// Number of its filters of system calls (seccomp(2)); before Linux 5.9, 2 stands for any number.
  std::uint32_t filters = 0;
};
std::optional<ThreadStatus> status_of(pid_t tid);
std::optional<ThreadStatus> own_status();  ///< this process's, in any pid namespace of /proc
std::optional<ThreadStatus> status_of(pid_t pid, pid_t tid);  ///< none if `tid` is not in `pid`
/// Returns whether none of a process's threads can run any more.  The first may end before the
/// others.  When another thread executes a program, it gets the first one's number.
bool has_ended(pid_t pid);
/// Parses the file's text; nullopt if it contains no process id.
std::optional<ThreadStatus> parse_thread_status(std::string_view text);

}  // namespace pe::stream
