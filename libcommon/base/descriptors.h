// How many descriptors there are, for those who hold files open.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/fd.h"

namespace pe {

/// `most`, or the part of the process's limit (ulimit -n) that is 1/`divisor`, if that is less.
inline std::size_t share_of_descriptors(std::size_t most, std::size_t divisor) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return most;
  return static_cast<std::size_t>(std::min<rlim_t>(most, limit.rlim_cur / divisor));
}

/// Are so many free?  Counted from the lowest free one on, and never taken: other threads open
/// files meanwhile.
inline bool has_free_descriptors(std::size_t count) {
  rlimit limit{};
  const Fd lowest(::open("/", O_PATH | O_CLOEXEC));
  if (!lowest || ::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return count == 0;
  std::size_t free = 1;
  for (int fd = lowest.get() + 1; free < count && static_cast<rlim_t>(fd) < limit.rlim_cur; ++fd)
    if (::fcntl(fd, F_GETFD) == -1)
      ++free;
  return free >= count;
}

/// Why something was not found in /proc: `problem`, or that nothing more can be opened to look.
inline std::string why_not_found(std::string problem) {
  return has_free_descriptors(1) ? std::move(problem) : "too many open files (ulimit -n)";
}

/// What a file takes that is opened by its path in another's root, checked, and opened again.
inline constexpr std::size_t kDescriptorsToOpen = 3;

/// How many are to be left by those who hold files open for long, for who opens one now and then.
inline std::size_t spare_descriptors() noexcept {
  constexpr std::size_t kMost = 16, kPart = 4;
  return share_of_descriptors(kMost, kPart);
}

}  // namespace pe
