// Samples the program: starts and ends the timers of its threads, and sets the signal's action.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>

#include "recording/sigprof/options.h"
#include "recording/sigprof/thread_table.h"

namespace pe::inprocess {

// The handler of SIGPROF while a program profiles itself.  Also restores the previous action.

/// Returns the upper half of the value that the signals of a table's timers carry.  It differs from
/// those of earlier tables, whose last signals may come late but are still recognized.
std::uint64_t next_cookie() noexcept;

/// Whether SIGPROF is free: no function is set for it.
bool is_signal_free() noexcept;

/// Installs our handler for SIGPROF.  From then on signals with the cookie are samples for `table`.
/// False on failure; errno has the reason.
bool install_handler(ThreadTable& table) noexcept;

/// Whether our handler is still installed.
bool is_handler_installed() noexcept;

/// Whether no handler accesses the table: all samples of handlers that have started are in the
/// rings.  A handler may be interrupted for long.
bool are_handlers_idle() noexcept;

/// Removes our handler: when this returns, no handler accesses the table.  The table's timers must
/// have been stopped.  Discards their pending signals, and restores the previous action for
/// SIGPROF, unless the program has set another one meanwhile.
void remove_handler() noexcept;

/// Does the same in the child of a fork(2), which has no timers and one thread.
void remove_handler_in_child() noexcept;

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
