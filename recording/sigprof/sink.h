// The descriptor of a stream.  The writing thread may wait for the reader, but only until a
// deadline once the run stops.
//
// Except to regular files, a write is at most PIPE_BUF, which a pipe with room accepts without
// waiting.  So Sink notices a reader that has stopped.  A program that closes all descriptors, as
// daemons do, also closes this one, and another file may get its number.  Sink notices that, and
// leaves the other file alone.  SIGPIPE and SIGXFSZ must be blocked in the calling thread.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/byte_reader.h"

namespace pe::inprocess {

class Sink {
 public:
  enum class State : std::uint32_t { kOpen, kFailed, kTooSlow };

  /// Works in zeroed memory.  Takes ownership of `fd`.  Waiting stops at `deadline_ns`
  /// (CLOCK_MONOTONIC; 0: never), which others may set at any time.
  void open(int fd, const std::uint64_t& deadline_ns) noexcept;
  void close() noexcept;

  /// Writes all bytes.  False if that fails; later calls write nothing.
  bool write(Bytes bytes) noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  /// The errno of the failure.
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_; }

 private:
  bool wait() noexcept;
  [[nodiscard]] bool is_late() const noexcept;
  [[nodiscard]] bool is_still_the_same() const noexcept;
  [[nodiscard]] long write_some(Bytes bytes) const noexcept;

  const std::uint64_t* deadline_ns_;
  std::uint64_t written_;
  std::uint64_t device_, inode_;  ///< of the opened file
  int fd_;
  int error_;
  State state_;
  bool is_socket_, may_wait_;
};

}  // namespace pe::inprocess
