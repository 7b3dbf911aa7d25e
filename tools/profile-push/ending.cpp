// SPDX-License-Identifier: MIT
#include "profile-push/ending.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace pe::push {

void Ending::begin() { over_at_ = over_at_ ? Clock::now() : Clock::now() + patience_; }

/// Waits at most so long for something to happen, and takes it in.
void Ending::look(std::chrono::milliseconds time) {
  std::array<pollfd, 2> fds = {{{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                                {.fd = follow_fd_, .events = POLLIN, .revents = 0}}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(time.count())) <= 0)
    return;
  while (signals_.take())
    begin();
  if (fds[1].revents == 0)
    return;
  std::array<char, 4096> ignored;
  const ssize_t n = ::read(follow_fd_, ignored.data(), ignored.size());
  if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
    return;
  follow_fd_ = -1;  // which poll(2) passes over
  if (!over_at_)
    begin();
}

void Ending::wait(std::chrono::milliseconds time) {
  // poll(2) takes an int of them.
  constexpr std::chrono::milliseconds kAtOnce = std::chrono::hours(1);
  const auto until = Clock::now() + time;
  for (auto left = time; left.count() > 0 && !over_at_;
       left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()))
    look(std::min(left, kAtOnce));
}

}  // namespace pe::push
