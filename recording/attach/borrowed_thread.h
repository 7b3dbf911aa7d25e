// Borrows a thread of another process to call functions there.
//
// The thread is stopped by ptrace(2) at a safe point (safe_point.h).  Its registers then lead it
// through a small piece of code in memory of its own process, which calls the function on a stack
// of its own.  The other threads run on.  Signals wait meanwhile, except those of faults.
//
// We may be killed at any moment.  The thread then goes on by itself: behind each call it finds the
// frame of a signal handler with its own state, and returns from that (rt_sigreturn(2)).  A call
// that it was waiting in then ends as if by a signal.  Otherwise we restore the state ourselves,
// and the call starts again.
//
// Source: ptrace(2).
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "recording/attach/process_image.h"
#include "recording/attach/safe_point.h"
#include "recording/attach/saved_thread.h"

namespace pe::recording {

class BorrowedThread {
 public:
  /// Waits for a thread at a safe point, and stops it.  Long waits call `look`, which throws if
  /// they must end.  Throws Refused if there is none, or if no thread may be stopped.  The
  /// arguments must outlive this.
  BorrowedThread(pid_t pid, const ProcessImage& image, SafePoint& safe_point, LateStops& late_stops,
                 const std::function<void()>& look);
  BorrowedThread(const BorrowedThread&) = delete;
  BorrowedThread& operator=(const BorrowedThread&) = delete;
  BorrowedThread(BorrowedThread&&) = delete;
  BorrowedThread& operator=(BorrowedThread&&) = delete;
  /// The thread goes on where it was.
  ~BorrowedThread();

  using Arguments = std::array<std::uint64_t, 6>;
  /// Calls a function.  Returns its result.  Throws Error if the thread does not come back.
  std::uint64_t call(std::uint64_t function, const Arguments& arguments);
  /// Makes a system call.  Returns its result, or -1 without errno.
  std::int64_t system_call(long number, std::uint64_t a = 0, std::uint64_t b = 0,
                           std::uint64_t c = 0);

  /// Memory of the process for arguments, of kRoomBytes.
  [[nodiscard]] std::uint64_t room() const noexcept { return data_ + kRoomAt; }
  static constexpr std::uint64_t kRoomBytes = 8192;
  /// Copies to and from memory of the process.  Throws Error.
  void write(std::uint64_t avma, std::span<const std::byte> bytes) const;
  void read(std::uint64_t avma, std::span<std::byte> into) const;

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::uint64_t kRoomAt = 4096, kFrameAt = kRoomAt + kRoomBytes,
                                 kFrameBytes = 32'768, kStackBytes = 256 << 10,
                                 kDataBytes = kFrameAt + kFrameBytes + kStackBytes;

  void choose(SafePoint& safe_point, const std::function<void()>& look);
  bool take_one(SafePoint& safe_point, const std::function<void()>& look, bool is_trial);
  bool take(pid_t tid, SafePoint& safe_point, bool is_trial);
  bool stop(pid_t tid);
  int await_stop(pid_t tid, std::uint64_t patience_ns = 2'000'000'000);
  void prepare();
  std::uint64_t step_through(std::uint64_t function, const Arguments& arguments);
  [[noreturn]] void forget_ended();
  [[nodiscard]] int signal_of_stop(int status) const;
  void await_call();
  void await_result();
  void unmap();
  void let_go() noexcept;
  [[noreturn]] void leave_to_itself(const char* why);

  pid_t pid_;
  const ProcessImage& image_;
  LateStops& late_stops_;
  /// /proc/PID/mem: unlike process_vm_readv(2), it does not wait for memory that the process makes
  /// itself (userfaultfd(2)).
  Fd memory_;
  pid_t tid_ = 0;                      ///< 0: none
  SavedThread saved_;                  ///< at its safe point
  std::uint64_t code_ = 0, data_ = 0;  ///< our mappings in the process; 0: none yet
  std::string_view why_not_;           ///< of the last thread that was at no safe point
};

}  // namespace pe::recording
