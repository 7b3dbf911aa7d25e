// Samples the program: starts and ends the timers of its threads, and sets the signal's action.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "recording/sigprof/options.h"
#include "recording/sigprof/thread_table.h"

namespace pe::inprocess {

/// In zeroed memory.
class Sampling {
 public:
  /// Starts to sample the calling thread, and all others if `options` select them.  Returns
  /// SP_SIGPROF_OK, or the reason of a failure.  Call end() also after a failure.
  int begin(const Options& options) noexcept;
  /// Starts to sample the calling thread.
  int add_this_thread() noexcept;
  /// Finds the threads that have started or ended since, if that is due at `now_ns`.  Stops if the
  /// program has set a handler of its own.  The calling thread, `own_tid`, is not sampled.
  void follow_threads(std::uint64_t now_ns, pid_t own_tid) noexcept;

  /// Stops sampling: when this returns, there are no more samples, and SIGPROF has its previous
  /// action.
  void end() noexcept;
  /// Does the same in the child of a fork(2), which has no timers.
  static void end_in_child() noexcept;
  /// Frees the rings.
  void free() noexcept { threads_.free_rings(); }

  [[nodiscard]] ThreadTable& threads() noexcept { return threads_; }
  [[nodiscard]] const ThreadTable& threads() const noexcept { return threads_; }
  /// Whether the program has set a handler of its own.
  [[nodiscard]] bool is_taken_over() const noexcept { return is_taken_over_ != 0; }

 private:
  ThreadTable threads_;
  bool adds_all_;
  std::uint32_t has_ended_;  ///< our handler may be gone
  std::uint32_t is_taken_over_;
  std::uint64_t next_scan_ns_;
};

}  // namespace pe::inprocess
