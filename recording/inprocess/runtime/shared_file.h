// The program's side of the memory that it shares with a tool: creates the memory and sends it.
//
// Uses only system calls and stores: no allocation, no lock, no stdio.  So a forked child of a
// program with threads may also call it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pe::inprocess {

/// The reason of a failure: the failed action, and errno; 0 if it was no system call.
struct Failure {
  const char* what = nullptr;
  int error = 0;
};

struct SharedFile {
  int fd;
  std::byte* base;  ///< zeros
};

/// Creates a sparse memfd of `bytes` bytes, seals its size, and maps it with `protection`
/// (mmap(2)).  /proc shows `name`.  On failure returns nullopt and sets `failure`.
std::optional<SharedFile> make_shared_file(const char* name, std::uint64_t bytes, int protection,
                                           Failure& failure) noexcept;

/// Returns the limit of file sizes (RLIMIT_FSIZE).  A file that grew beyond it would kill the
/// process by SIGXFSZ.
std::uint64_t allowed_file_bytes() noexcept;

/// A connection to the listener (listener.h) at an abstract unix socket (SOCK_SEQPACKET).  The
/// listener does not answer messages, and drops unwanted ones.
class Link {
 public:
  /// Connects to the socket `name`, without its leading zero byte.  On failure, the link is false
  /// and errno has the reason: nobody listens, or it takes longer than `patience_s` seconds.  0
  /// means no limit.  A limit is needed because the listener may be stopped.
  explicit Link(std::string_view name, int patience_s = 0) noexcept;
  Link(const Link&) = delete;
  Link(Link&&) = delete;
  Link& operator=(const Link&) = delete;
  Link& operator=(Link&&) = delete;
  ~Link();

  explicit operator bool() const noexcept { return socket_ >= 0; }
  /// Whether the listener is the parent of this process.
  [[nodiscard]] bool is_to_parent() const noexcept;
  /// Sends the file.  On failure returns false, and errno has the reason.
  [[nodiscard]] bool send_file(int fd, std::string_view key) const noexcept;
  /// Sends the reason why no file follows.
  void send_reason(const Failure& failure) const noexcept;

 private:
  int socket_;
};

// Messages of a library: lines on the program's standard error.
//
// A program may close standard error and open another file in its place, as daemons do.  So a line
// is written only if standard error is still the file that the process started with.  A line is
// dropped if it cannot be written at once, or if its reader has gone.  The program must neither
// wait for a line nor die of it.

/// Remembers which file standard error is.  Call it when the program starts: nothing is written
/// before.
void note_standard_error() noexcept;
/// Suppresses all further lines.
void be_silent() noexcept;
/// Writes "TOOL: process PID WHAT (Too many open files)".  `error` is an errno, 0 for none.
void report_line(std::string_view tool, std::string_view what, int error = 0) noexcept;
/// Writes a line with `start` and the failed action: "is not traced: no memory".
void report_failure(std::string_view tool, std::string_view start, const Failure& failure) noexcept;

}  // namespace pe::inprocess
