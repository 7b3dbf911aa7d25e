// What /proc says of this process, by system calls into memory that is given: neither allocates nor
// throws.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace pe::inprocess {

/// A file of /proc or as much as `room` takes of it; empty if it cannot be read.
std::string_view read_proc(const char* path, std::span<char> room) noexcept;

/// A file of a thread: "comm", "status".
std::string_view read_of_thread(pid_t tid, const char* name, std::span<char> room) noexcept;

/// Whether "status" of a thread says that it blocks SIGPROF.
bool says_that_sigprof_is_blocked(std::string_view status) noexcept;

/// Pages that are mapped, from the text of /proc/self/statm; 0 if that is malformed.
std::uint64_t mapped_pages(std::string_view statm) noexcept;

/// Goes through /proc/self/task.
class TaskFolder {
 public:
  TaskFolder() noexcept;
  TaskFolder(const TaskFolder&) = delete;
  TaskFolder(TaskFolder&&) = delete;
  TaskFolder& operator=(const TaskFolder&) = delete;
  TaskFolder& operator=(TaskFolder&&) = delete;
  ~TaskFolder();

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  /// The next thread; 0 at the end.  A few may be left out while others end.
  pid_t next() noexcept;

 private:
  alignas(8) char entries_[4096];
  long bytes_ = 0, at_ = 0;
  int fd_;
};

}  // namespace pe::inprocess
