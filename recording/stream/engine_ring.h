// The ring between the thread of an engine of ours, which writes records (engine_records.h), and
// the main thread, where Drain reads them.
//
// The engine must never wait for the main thread: the reader of the stream may have stopped
// reading, and the target may be stopped meanwhile.  So records that find no room are dropped and
// counted.
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <vector>

#include "base/fd.h"
#include "recording/stream/ring_writer.h"

namespace pe::recording {

class EngineRing {
 public:
  static constexpr std::size_t kMostBytes = 256UL * 1024 * 1024;

  /// Throws Error.
  explicit EngineRing(std::size_t bytes = kMostBytes);

  // The engine's thread.
  /// Writes records that belong together.  Returns false if they find no room.  Samples leave some
  /// room for the few other records.
  bool write(Bytes records, bool is_sample);
  /// Counts records that will never be written.
  void add_lost(std::uint64_t count) noexcept { lost_ += count; }
  /// All records that are older than `time_ns` have been written.  Engines that write records in
  /// order of time need not call it.
  void complete_until(std::uint64_t time_ns) noexcept { complete_ns_ = time_ns; }
  /// Sampling cannot continue: the next call of check() throws `why`.
  void fail(std::exception_ptr why) noexcept;

  // The main thread.
  /// Readable if there are new records.
  [[nodiscard]] int fd() const noexcept { return wakes_.get(); }
  /// Call this before reading.  Throws the exception given to fail().
  void check();
  /// Returns the time given to complete_until().  Call this before reading the rings.
  [[nodiscard]] std::uint64_t complete_ns() const noexcept { return complete_ns_; }
  /// For Drain.
  [[nodiscard]] std::vector<stream::Ring>& rings() noexcept { return rings_; }

  /// Returns the number of lost records.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 private:
  void wake() noexcept;

  std::vector<stream::Ring> rings_;  ///< one
  stream::RingWriter writer_;
  Fd wakes_;
  std::atomic<bool> has_woken_ = false;
  std::atomic<std::uint64_t> lost_ = 0;
  std::atomic<std::uint64_t> complete_ns_ = std::numeric_limits<std::uint64_t>::max();
  std::exception_ptr failure_;  ///< valid if has_failed_
  std::atomic<bool> has_failed_ = false;
};

}  // namespace pe::recording
