// Reads what an iterator of the kernel writes.
// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace pe::unwind {

/// Returns all items up to the end of `fd`.  The kernel reports EAGAIN if its program repeats one.
/// Throws Error about `subject`.
template <typename Item>
std::vector<Item> read_items(int fd, std::string_view subject) {
  std::vector<Item> all;
  std::array<std::byte, 64 * sizeof(Item)> buffer;
  std::size_t filled = 0;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data() + filled, buffer.size() - filled);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (got < 0)
      throw_errno(subject, errno);
    if (got == 0)
      return all;
    filled += static_cast<std::size_t>(got);
    const std::size_t whole = filled / sizeof(Item);
    const std::size_t before = all.size();
    all.resize(before + whole);
    std::memcpy(&all[before], buffer.data(), whole * sizeof(Item));
    filled -= whole * sizeof(Item);
    std::memmove(buffer.data(), buffer.data() + whole * sizeof(Item), filled);
  }
}

}  // namespace pe::unwind
