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
  std::byte* base;  ///< heap::kFileBytes of zeros
};

/// A sealed memfd, mapped.  nullopt: `failure` says why.
std::optional<SharedFile> make_shared_file(SharedFailure& failure) noexcept;
/// Sends `fd` to the abstract unix socket `name` (SOCK_SEQPACKET); nobody waits for an answer.
bool send_file(int fd, std::string_view name, SharedFailure& failure) noexcept;

}  // namespace pe::malloctrace
