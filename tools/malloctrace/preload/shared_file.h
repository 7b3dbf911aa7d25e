// Makes the memory that is shared with malloctrace, and hands it over.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace pe::malloctrace {

/// Why there is none: what failed, and errno.
struct SharedFailure {
  const char* what = nullptr;
  int error = 0;
};

struct SharedFile {
  int fd;
  std::byte* base;  ///< heap::kFileBytes of zeros, mapped without access: see extents.h
};

/// A sealed memfd, mapped.  nullopt: `failure` says why.
std::optional<SharedFile> make_shared_file(SharedFailure& failure) noexcept;

/// A connection to malloctrace, by the abstract unix socket `name` (SOCK_SEQPACKET).  There is none
/// where the trace is over; what is sent is not answered, and lost if malloctrace does not want it.
class Link {
 public:
  explicit Link(std::string_view name) noexcept;
  Link(const Link&) = delete;
  Link(Link&&) = delete;
  Link& operator=(const Link&) = delete;
  Link& operator=(Link&&) = delete;
  ~Link();

  explicit operator bool() const noexcept { return socket_ >= 0; }
  /// Whether malloctrace has started this process itself.
  [[nodiscard]] bool is_to_parent() const noexcept;
  [[nodiscard]] bool send_file(int fd) const noexcept;
  /// Why no file comes.
  void send_reason(const SharedFailure& failure) const noexcept;

 private:
  int socket_;
};

}  // namespace pe::malloctrace
