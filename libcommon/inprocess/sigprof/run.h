// Sampling from its start to its end: the threads, and the thread of ours that writes the stream.
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
  /// Begins to sample the calling thread, and if `options` want them all others.  Takes over `fd`,
  /// whatever comes of it.  SP_SIGPROF_OK, or why not: then `run` is null, and errno may say more.
  static int begin(const Options& options, int fd, Run*& run) noexcept;

  /// Samples the calling thread, too.
  int add_this_thread() noexcept;

  // To end it takes three steps, in this order.
  /// When this returns, there are no more samples, and SIGPROF is as it was.
  void end_sampling() noexcept;
  /// Waits for the stream to be written, as long as the options say.
  void end_writer() noexcept;
  /// SP_SIGPROF_OK, or what has gone wrong meanwhile.  Frees the memory.
  int end(sp_sigprof_counts& counts) noexcept;

  /// False in a child that was made without the C library's handlers of fork(2), by _Fork(3).
  [[nodiscard]] bool is_of_this_process() const noexcept;
  /// In the child of a fork(2): lets go of what there is of the parent's.
  void abandon() noexcept;

  /// Held while a fork must wait.
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
  std::uint32_t has_ended_sampling_;  ///< so that our handler may be gone
  std::uint32_t is_taken_over_;       ///< the program has set a handler of its own
  std::uint64_t deadline_ns_;
  std::uint64_t period_ns_, start_cpu_ns_, writer_cpu_ns_;
  std::uint64_t pass_ns_, pass_tick_ns_;  ///< when it began; when the kernel had last ticked then
  std::uint64_t previous_pass_ns_;        ///< the tick of the pass before
  std::uint64_t next_scan_ns_;
  std::uint64_t blocking_;
  std::array<std::byte, 2 * RecordBuffer::kLeastRoom> room_;
  std::array<std::byte, kMostRingBytes> ring_;  ///< a copy of what is being written
};

}  // namespace pe::inprocess
