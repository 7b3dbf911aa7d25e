// A program's side of the memory that it shares with a tool: makes it and hands it over.
//
// System calls and stores only: no allocation, no lock, no stdio, so that a forked child of a
// program with threads may do it, too.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pe::inprocess {

/// Why something could not be had: what failed, and errno; 0: it was no system call.
struct Failure {
  const char* what = nullptr;
  int error = 0;
};

struct SharedFile {
  int fd;
  std::byte* base;  ///< zeros
};

/// A memfd of that size, sealed against any other, sparse, and mapped as `protection` (mmap(2))
/// says.  `name` is what /proc shows.  nullopt: `failure` says why.
std::optional<SharedFile> make_shared_file(const char* name, std::uint64_t bytes, int protection,
                                           Failure& failure) noexcept;

/// How large a file may be (RLIMIT_FSIZE); growing one beyond would kill the process by SIGXFSZ.
std::uint64_t allowed_file_bytes() noexcept;

/// A connection to who listens (listener.h) at the abstract unix socket `name` (SOCK_SEQPACKET,
/// without its leading zero byte).  What is sent is not answered, and lost if it is not wanted.
class Link {
 public:
  /// There is none (and errno says why) where nobody listens, nor where it takes longer than
  /// `patience_s` seconds, 0: however long, as whoever listens may have been stopped.
  explicit Link(std::string_view name, int patience_s = 0) noexcept;
  Link(const Link&) = delete;
  Link(Link&&) = delete;
  Link& operator=(const Link&) = delete;
  Link& operator=(Link&&) = delete;
  ~Link();

  explicit operator bool() const noexcept { return socket_ >= 0; }
  /// Whether who listens has started this process itself.
  [[nodiscard]] bool is_to_parent() const noexcept;
  /// False, and errno says why, if it could not be sent.
  [[nodiscard]] bool send_file(int fd, std::string_view key) const noexcept;
  /// Why no file comes.
  void send_reason(const Failure& failure) const noexcept;

 private:
  int socket_;
};

}  // namespace pe::inprocess
