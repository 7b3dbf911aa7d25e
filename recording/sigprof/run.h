// A run of the profiler, from start to stop: what it samples, what it writes, and our thread that
// writes.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <stackpipe/sigprof.h>

#include <cstdint>

#include "recording/sigprof/options.h"
#include "recording/sigprof/records.h"
#include "recording/sigprof/sample_writer.h"
#include "recording/sigprof/sampling.h"

namespace pe::inprocess {

class Run {
 public:
  /// Starts to sample the calling thread, and all others if `options` select them.  Takes ownership
  /// of `fd`, even on failure.  Returns SP_SIGPROF_OK, or the reason of a failure.  On failure
  /// `run` is null, and errno may have details.
  static int begin(const Options& options, int fd, Run*& run) noexcept;

  /// Starts to sample the calling thread.
  int add_this_thread() noexcept { return sampling_.add_this_thread(); }

  // Stopping takes three steps, in this order.
  /// Stops sampling: when this returns, there are no more samples, and SIGPROF has its previous
  /// action.
  void end_sampling() noexcept { sampling_.end(); }
  /// Waits until the stream is written, at most for the time in the options.
  void end_writer() noexcept;
  /// Returns SP_SIGPROF_OK, or the failure of the run.  Frees the memory.
  int end(sp_sigprof_counts& counts) noexcept;

  /// False in a child of _Fork(3), which does not call the C library's fork handlers.
  [[nodiscard]] bool is_of_this_process() const noexcept;
  /// Releases the parent's handler, descriptor and memory, in the child of a fork(2).
  void abandon() noexcept;

  /// The lock that makes forks wait.
  pthread_mutex_t& fork_lock() noexcept { return sampling_.threads().lock(); }

 private:
  int begin_writer() noexcept;
  void free() noexcept;
  void fill(sp_sigprof_counts& counts) const noexcept;
  int result() const noexcept;

  // Of our thread.
  static void* run_writer(void* run) noexcept;
  void write_stream() noexcept;
  void wait() noexcept;

  Options options_;
  Sampling sampling_;
  SampleWriter writer_;
  Sink sink_;
  pthread_t thread_;
  std::uint32_t pid_;
  std::uint32_t is_stopping_;  ///< a futex: our thread sleeps on it
  std::uint64_t deadline_ns_;
  std::uint64_t start_cpu_ns_, writer_cpu_ns_;
};

}  // namespace pe::inprocess
