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

namespace pe::preload {

/// Why something could not be had: what failed, and errno; 0: it was no system call.
struct Failure {
  const char* what = nullptr;
  int error = 0;
};

struct SharedFile {
  int fd;
  std::byte* base;  ///< zeros
};

/// A memfd of that size, sealed against any other, mapped and sparse.  `name` is what /proc shows.
/// nullopt: `failure` says why.
std::optional<SharedFile> make_shared_file(const char* name, std::uint64_t bytes,
                                           Failure& failure) noexcept;

/// How large a file may be (RLIMIT_FSIZE); growing one beyond would kill the process by SIGXFSZ.
std::uint64_t allowed_file_bytes() noexcept;

/// Sends `fd` with `message` to the abstract unix socket `name` (SOCK_SEQPACKET, without its
/// leading zero byte); nobody waits for an answer.
bool send_file(int fd, std::string_view name, std::string_view message, Failure& failure) noexcept;

/// A line on standard error: "TOOL: process PID WHAT (errno N)".
void report_line(std::string_view tool, std::string_view what, int error = 0) noexcept;

}  // namespace pe::preload
