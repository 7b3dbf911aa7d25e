// The descriptor that a stream is written to, by a thread that may wait for its reader, but not
// for ever once it has been asked to end.
//
// No more is written at once than a pipe with room takes without waiting (PIPE_BUF), so that a
// reader that stands still is noticed.  A program that closes all descriptors, as daemons do,
// closes this one, too, and its number may be another file's then: that is noticed, and left alone.
// SIGPIPE and SIGXFSZ must be blocked in the calling thread.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/byte_reader.h"

namespace pe::inprocess {

class Sink {
 public:
  enum class State : std::uint32_t { kOpen, kFailed, kTooSlow };

  /// In zeroed memory.  Takes over `fd`.  `deadline_ns`, which others may set at any time: when to
  /// give up waiting (CLOCK_MONOTONIC); 0: never.
  void open(int fd, const std::uint64_t& deadline_ns) noexcept;
  void close() noexcept;

  /// False if not all could be written: nothing will be any more.
  bool write(Bytes bytes) noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  /// errno of what has failed.
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_; }

 private:
  bool wait() noexcept;
  [[nodiscard]] bool is_late() const noexcept;
  [[nodiscard]] bool is_still_the_same() const noexcept;
  [[nodiscard]] long write_some(Bytes bytes) const noexcept;

  const std::uint64_t* deadline_ns_;
  std::uint64_t written_;
  std::uint64_t device_, inode_;  ///< of what was opened
  int fd_;
  int error_;
  State state_;
  bool is_socket_, may_wait_;
};

}  // namespace pe::inprocess
