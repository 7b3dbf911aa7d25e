// How many descriptors there are, for those who hold files open.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace pe {

/// `most`, or the part of the process's limit (ulimit -n) that is 1/`divisor`, if that is less.
inline std::size_t share_of_descriptors(std::size_t most, std::size_t divisor) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return most;
  return static_cast<std::size_t>(std::min<rlim_t>(most, limit.rlim_cur / divisor));
}

/// Are so many free?  Tried out, as they are free in no order.
inline bool has_free_descriptors(std::size_t count) {
  std::vector<Fd> tried;
  while (tried.size() < count) {
    Fd one(::open("/", O_PATH | O_CLOEXEC));
    if (!one)
      return false;
    tried.push_back(std::move(one));
  }
  return true;
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
