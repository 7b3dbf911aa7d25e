// A file descriptor with one owner.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace pe {

class Fd {
 public:
  Fd() noexcept = default;
  /// Owns the result of open(2) or a similar call; negative means none.
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }

  explicit operator bool() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int get() const noexcept { return fd_; }
  void close() noexcept {
    if (fd_ >= 0)
      ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// Counts file descriptors, for code that holds files open.

/// Returns the lesser of `most` and 1/`divisor` of the process's limit (ulimit -n).
inline std::size_t share_of_descriptors(std::size_t most, std::size_t divisor) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return most;
  return static_cast<std::size_t>(std::min<rlim_t>(most, limit.rlim_cur / divisor));
}

/// Allows this process as many descriptors as it may have: a sampled thread needs one on each CPU,
/// and a process that samples or traces itself two.  Children that start later inherit that.
inline void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Returns whether `count` descriptors are free.  Counts from the lowest free one on and does not
/// occupy the others, because other threads open files meanwhile.
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

/// Returns why something was not found in /proc: `problem`, or that no descriptor is free.
inline std::string why_not_found(std::string problem) {
  return has_free_descriptors(1) ? std::move(problem) : "too many open files (ulimit -n)";
}

/// Descriptors needed to open a file by its path in another process's root, check it, and open it
/// again.
inline constexpr std::size_t kDescriptorsToOpen = 3;

/// Returns how many descriptors a long-term holder of files must leave free, for code that
/// occasionally opens a file.
inline std::size_t spare_descriptors() noexcept {
  constexpr std::size_t kMost = 16, kPart = 4;
  return share_of_descriptors(kMost, kPart);
}

}  // namespace pe
