// /proc/PID/maps and what else /proc says of a process (proc(5)).
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

/// A path as it is in the file system: the kernel writes a newline in it as "\012" (proc(5)).
std::string unescape_path(std::string_view path);

/// Calls `on_map` for each mapping of a process, also if its first thread has ended; false if the
/// process is gone or not ours to read.
bool for_each_mapping(pid_t pid, const std::function<void(const MapsLine&)>& on_map);

/// The threads of a process, in ascending order; empty if it is gone.
std::vector<pid_t> threads_of(pid_t pid);

/// The children that a process's first thread has begun, and that have not been waited for; empty
/// where the kernel does not tell (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children_of(pid_t pid);

/// What these processes have started and, with it, what that has started, without themselves; one
/// whose parent has ended belongs to nobody.
std::vector<pid_t> descendants_of(const std::vector<pid_t>& processes);

/// The processes whose name (/proc/PID/comm, 15 bytes at most) or program file has this name.
/// Zombies do not count.
std::vector<pid_t> processes_named(std::string_view name);

/// Every process, in ascending order.
std::vector<pid_t> all_processes();

/// The name of a thread (prctl(2), PR_SET_NAME); nullopt if it is gone.
std::optional<std::string> comm_of(pid_t pid, pid_t tid);

/// What /proc/TID/status says of a thread.
struct ThreadStatus {
  pid_t pid = 0;  ///< its process (Tgid)
  pid_t parent_pid = 0;
  pid_t pid_in_namespace = 0;  ///< of its process, in its own pid namespace (NStgid, last number)
  uid_t effective_uid = 0;
  char state = '?';        ///< R, S, D, T, t, Z, X …
  pid_t tracer_pid = 0;    ///< who traces it (ptrace(2)); 0: nobody
  bool has_memory = true;  ///< of its own: not a thread of the kernel, nor a zombie
  // Sets: bit N - 1 is signal N, bit N capability N.
  std::uint64_t pending_signals = 0, blocked_signals = 0;  ///< of this thread, not its process
  std::uint64_t effective_capabilities = 0;
};
std::optional<ThreadStatus> status_of(pid_t tid);
std::optional<ThreadStatus> own_status();  ///< this process's, whichever pid namespace /proc is of
std::optional<ThreadStatus> status_of(pid_t pid, pid_t tid);  ///< none if it is not of the process
/// The same from the file's text; nullopt: it names no process.
std::optional<ThreadStatus> parse_thread_status(std::string_view text);

}  // namespace pe::stream
