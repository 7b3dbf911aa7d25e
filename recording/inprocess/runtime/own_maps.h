// Reads /proc/self/maps where nothing may be allocated.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "recording/inprocess/keep_errno.h"
#include "stream/proc/maps_line.h"

namespace pe::inprocess {

/// The least room for a part of the file: its longest line.
using MapsRoom = std::array<char, 4096 + 128>;

/// Calls `on_mapping(MapsLine)` for each mapping until it returns false.  False if the file cannot
/// be read.  `room` has at least the size of a MapsRoom; more saves system calls.
template <typename Function>
bool for_each_own_mapping(std::span<char> room, Function on_mapping) noexcept {
  const KeepErrno keep;
  const auto fd =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (fd < 0)
    return false;
  std::size_t have = 0;
  bool goes_on = true;
  while (goes_on) {
    const long got = ::syscall(SYS_read, fd, room.data() + have, room.size() - have);
    if (got <= 0)
      break;
    have += static_cast<std::size_t>(got);
    std::string_view left(room.data(), have);
    for (auto end = left.find('\n'); goes_on && end != left.npos; end = left.find('\n')) {
      const auto map = stream::parse_maps_line({left.data(), end});
      if (map)
        goes_on = on_mapping(*map);
      left.remove_prefix(end + 1);
    }
    if (left.size() == room.size())
      left = {};  // no line is that long
    std::memmove(room.data(), left.data(), left.size());
    have = left.size();
  }
  ::syscall(SYS_close, fd);
  return true;
}

}  // namespace pe::inprocess
