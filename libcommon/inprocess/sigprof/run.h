// A run of the profiler, from start to stop: the sampled threads, and our thread that writes the
// stream.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <stackpipe/sigprof.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "inprocess/sigprof/mappings.h"
#include "inprocess/sigprof/options.h"
#include "inprocess/sigprof/record_buffer.h"
#include "inprocess/sigprof/sink.h"
#include "inprocess/sigprof/thread_table.h"

namespace pe::inprocess {

class Run {
 public:
  /// Starts to sample the calling thread, and all others if `options` select them.  Takes ownership
  /// of `fd`, even on failure.  Returns SP_SIGPROF_OK, or the reason of a failure.  On failure
  /// `run` is null, and errno may have details.
  static int begin(const Options& options, int fd, Run*& run) noexcept;

  /// Starts to sample the calling thread.
  int add_this_thread() noexcept;

  // Stopping takes three steps, in this order.
  /// Stops sampling: when this returns, there are no more samples, and SIGPROF has its previous
  /// action.
  void end_sampling() noexcept;
  /// Waits until the stream is written, at most for the time in the options.
  void end_writer() noexcept;
  /// Returns SP_SIGPROF_OK, or the failure of the run.  Frees the memory.
  int end(sp_sigprof_counts& counts) noexcept;

  /// False in a child of _Fork(3), which does not call the C library's fork handlers.
  [[nodiscard]] bool is_of_this_process() const noexcept;
  /// Releases the parent's handler, descriptor and memory, in the child of a fork(2).
  void abandon() noexcept;

  /// The lock that makes forks wait.
  pthread_mutex_t& fork_lock() noexcept { return threads_.lock(); }

 private:
  void open(const Options& options, int fd) noexcept;
  int begin_sampling() noexcept;
  int begin_writer() noexcept;
  void free() noexcept;
  void fill(sp_sigprof_counts& counts) const noexcept;
  int result() const noexcept;

  static void* run_writer(void* run) noexcept;
  void write_stream() noexcept;
  void pass() noexcept;
  void finish() noexcept;
  void drain(std::uint32_t number) noexcept;
  void tell(Slot& slot) noexcept;
  void name(Slot& slot) noexcept;
  void take_records(std::size_t bytes) noexcept;
  void look_at_threads() noexcept;
  void count_blocking() noexcept;
  void wait() noexcept;
  [[nodiscard]] When since_last_pass(std::uint32_t tid) const noexcept;

  ThreadTable threads_;
  Mappings mappings_;
  Options options_;
  Sink sink_;
  RecordBuffer buffer_;
  pthread_t writer_;
  std::uint32_t pid_, writer_tid_;
  std::uint32_t is_stopping_;         ///< a futex: the writer sleeps on it
  std::uint32_t has_ended_sampling_;  ///< our handler may be gone
  std::uint32_t is_taken_over_;       ///< the program has set a handler of its own
  std::uint64_t deadline_ns_;
  std::uint64_t period_ns_, start_cpu_ns_, writer_cpu_ns_;
  std::uint64_t pass_ns_, pass_tick_ns_;  ///< when it started; the kernel's last tick before
  std::uint64_t previous_pass_ns_;        ///< the tick of the previous pass
  std::uint64_t next_scan_ns_;
  std::uint64_t blocking_;
  std::array<std::byte, 2 * RecordBuffer::kLeastRoom> room_;
  std::array<std::byte, kMostRingBytes> ring_;  ///< a copy of the samples that are being written
};

}  // namespace pe::inprocess
