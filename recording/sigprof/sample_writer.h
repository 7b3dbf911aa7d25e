// Copies samples from the rings into the stream.  Also writes the threads, their names, and the
// mappings that the samples need.
//
// A pass writes what has happened since the last one.  A round is one pass, or several if handlers
// were interrupted: see begin_pass().
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "recording/sigprof/mappings.h"
#include "recording/sigprof/options.h"
#include "recording/sigprof/records.h"
#include "recording/sigprof/thread_table.h"

namespace pe::inprocess {

/// For one thread.  In zeroed memory.
class SampleWriter {
 public:
  /// Call this first.  `threads` and `sink` must outlive this.
  void open(const Options& options, ThreadTable& threads, Sink& sink) noexcept;
  /// Writes the stream's header.
  void write_head() noexcept { inprocess::write_head(buffer_, options_); }

  /// Starts a pass, and returns its time.  Threads may be added to the table until write_pass().
  std::uint64_t begin_pass() noexcept;
  void write_pass() noexcept;
  /// Writes the end of a whole stream.
  void finish() noexcept;

  // Counts of the samples in the stream.
  [[nodiscard]] std::uint64_t samples() const noexcept { return buffer_.written_samples(); }
  [[nodiscard]] std::uint64_t weight() const noexcept { return buffer_.written_weight(); }
  /// Returns how many threads had no sample because they block the signal.
  [[nodiscard]] std::uint64_t blocking() const noexcept { return blocking_; }

 private:
  void drain(std::uint32_t number) noexcept;
  void write_new_thread(Slot& slot) noexcept;
  void write_name_of(Slot& slot) noexcept;
  void write_samples(std::size_t bytes) noexcept;
  void count_blocking() noexcept;
  [[nodiscard]] When since_last_pass(std::uint32_t tid) const noexcept;

  Options options_;
  ThreadTable* threads_;
  Mappings mappings_;
  RecordBuffer buffer_;
  std::uint32_t pid_;
  std::uint64_t pass_ns_, pass_tick_ns_;  ///< when it started; the kernel's last tick before
  std::uint64_t previous_pass_ns_;        ///< the tick of the previous pass
  bool is_complete_;  ///< this pass writes all samples that are older than its start
  std::uint64_t blocking_;
  std::array<std::byte, 2 * RecordBuffer::kLeastRoom> room_;
  std::array<std::byte, kMostRingBytes> ring_;  ///< a copy of the samples that are being written
};

}  // namespace pe::inprocess
