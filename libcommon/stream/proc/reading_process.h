// A process of our own that reads memory of others for us, so that we need not wait for it.
//
// A thread would not do: only SIGKILL ends the wait for memory that does not come, and that ends
// all threads.  For FUSE even SIGKILL waits until the mount answers or ends.  So that we can end,
// the process has none of our files, and dies with us if it can.
//
// An answer takes 15 us (Linux 6.18, an idle CPU).
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"

namespace pe::stream {

/// One thread at a time may use it.
class ReadingProcess {
 public:
  ReadingProcess() = default;
  ReadingProcess(const ReadingProcess&) = delete;
  ReadingProcess& operator=(const ReadingProcess&) = delete;
  ReadingProcess(ReadingProcess&&) = delete;
  ReadingProcess& operator=(ReadingProcess&&) = delete;
  ~ReadingProcess();

  static constexpr std::size_t kMostBytes = 32UL * 1024;
  /// How long the process may wait for memory.  A disk may take some 10 ms.  The time in which it
  /// has no CPU does not count.
  static constexpr std::uint64_t kPatienceNs = 100'000'000;

  /// Copies the memory at `avma` of a thread's process, up to kMostBytes.  Returns the number of
  /// bytes: fewer if a part is not mapped, or cannot be read.  Returns nullopt if they do not come
  /// in time.  The process is started when it is needed.
  std::optional<std::size_t> read(pid_t tid, std::uint64_t avma, std::span<std::byte> into);
  /// Returns the process; 0 before the first read.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  bool start();
  void stop(int patience_ms);
  void reap();
  [[nodiscard]] bool await_answer() const;

  Fd socket_;  ///< none: the process does not run
  pid_t pid_ = 0;
  Fd pidfd_;
  std::vector<Fd> stopped_;  ///< pidfds of processes that were killed and may still wait
};

}  // namespace pe::stream
