// Reads files of /proc about this process, by system calls into the caller's memory.  Neither
// allocates nor throws.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "recording/inprocess/keep_errno.h"
#include "stream/proc/maps_line.h"

namespace pe::inprocess {

// System calls: after vfork(2) and clone(2), the C library may know another process's numbers.
inline std::uint32_t own_pid() noexcept {
  return static_cast<std::uint32_t>(::syscall(SYS_getpid));
}
inline pid_t own_tid() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }

/// Returns a file of /proc, or the part that fits in `room`; empty if it is unreadable.
std::string_view read_proc(const char* path, std::span<char> room) noexcept;

/// Returns a file of a thread: "comm", "status".
std::string_view read_of_thread(pid_t tid, const char* name, std::span<char> room) noexcept;

/// Returns the most memory that the process had resident, from its "status" (proc(5), VmHWM); 0 if
/// that is malformed.
std::uint64_t resident_peak_bytes(std::string_view status) noexcept;
/// Whether the thread blocks SIGPROF, according to its "status".
bool reports_blocked_sigprof(std::string_view status) noexcept;

/// Returns how many filters of system calls (seccomp(2)) a thread has, from its "status".  Before
/// Linux 5.9 that has only the mode: 2 stands for any number.
std::uint32_t filters_in(std::string_view status) noexcept;

/// Returns the number of mapped pages, from the text of /proc/self/statm; 0 if that is malformed.
std::uint64_t mapped_pages(std::string_view statm) noexcept;

/// Iterates over /proc/self/task.
class TaskFolder {
 public:
  TaskFolder() noexcept;
  TaskFolder(const TaskFolder&) = delete;
  TaskFolder(TaskFolder&&) = delete;
  TaskFolder& operator=(const TaskFolder&) = delete;
  TaskFolder& operator=(TaskFolder&&) = delete;
  ~TaskFolder();

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  /// Returns the next thread; 0 at the end.  May skip a few threads while others end.
  pid_t next() noexcept;

 private:
  alignas(8) char entries_[4096];
  long bytes_ = 0, at_ = 0;
  int fd_;
};

// Reads /proc/self/maps where nothing may be allocated.

/// The least room for a part of the file: its longest line.
using MapsRoom = std::array<char, 4096 + 128>;

/// Calls `on_mapping(MapsLine)` for each mapping until it returns false.  False if the file cannot
/// be read.  `room` has at least the size of a MapsRoom; more saves system calls.
template <typename Function>
bool for_each_own_mapping(std::span<char> room, Function on_mapping) noexcept {
  const KeepErrno keep;
  const auto fd =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (fd < 0)
    return false;
  std::size_t have = 0;
  bool goes_on = true;
  while (goes_on) {
    const long got = ::syscall(SYS_read, fd, room.data() + have, room.size() - have);
    if (got <= 0)
      break;
    have += static_cast<std::size_t>(got);
    std::string_view left(room.data(), have);
    for (auto end = left.find('\n'); goes_on && end != left.npos; end = left.find('\n')) {
      const auto map = stream::parse_maps_line({left.data(), end});
      if (map)
        goes_on = on_mapping(*map);
      left.remove_prefix(end + 1);
    }
    if (left.size() == room.size())
      left = {};  // no line is that long
    std::memmove(room.data(), left.data(), left.size());
    have = left.size();
  }
  ::syscall(SYS_close, fd);
  return true;
}

}  // namespace pe::inprocess
