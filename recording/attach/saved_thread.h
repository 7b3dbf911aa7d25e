// The state of a stopped thread that it needs to go on, and how it goes on.
//
// Sources: ptrace(2); arch/x86/kernel/signal_64.c and fpu/signal.c (the frame of a signal);
// include/linux/errno.h (calls that are made again).
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pe::recording {

/// Converts an address or a number for ptrace(2), which accepts only pointers.
inline void* as_pointer(std::uint64_t value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr)
}

struct SavedThread {
  user_regs_struct registers = {};
  std::vector<std::byte> floats;  ///< XSAVE's area
  std::uint64_t mask = 0;         ///< blocked signals

  /// Reads that of a stopped thread.  Throws Error.
  static SavedThread of(pid_t tid);

  /// Returns the frame of a signal handler with this state, for the address `at`, which is
  /// divisible by kFrameAlignment.  rt_sigreturn(2) with `at` as stack pointer restores the state.
  /// A system call that waited is made again, or ends with EINTR: as after a signal without
  /// SA_RESTART.
  [[nodiscard]] std::vector<std::byte> frame(std::uint64_t at) const;
  static constexpr std::uint64_t kFrameAlignment = 64;

  /// Restores the state of a stopped thread, and lets it go.
  void let_go(pid_t pid, pid_t tid) const;
};

/// Lets a stopped thread go that was not changed.  A call that ended with EINTR because of the
/// stop, without a signal, is made again.
void let_unchanged_go(pid_t pid, pid_t tid);

/// Sets which signals a stopped thread blocks.
void set_signal_mask(pid_t tid, std::uint64_t mask);

/// Threads that were asked to stop and did not, as those that wait for a disk.  When they stop,
/// they must be let go.
class LateStops {
 public:
  explicit LateStops(pid_t pid) : pid_(pid) {}

  void add(pid_t tid);
  [[nodiscard]] bool contains(pid_t tid) const;
  /// Lets those go that have stopped.  To be called now and then.
  void look();

 private:
  pid_t pid_;
  std::vector<pid_t> tids_;
};

}  // namespace pe::recording
