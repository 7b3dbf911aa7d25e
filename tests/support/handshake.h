// A child that waits for a signal to start its work, and for one to end
// (tests/data/src/off_cpu.cpp).
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "recording/child.h"

namespace pe::testing {

class HandshakenChild {
 public:
  /// The child is held before it executes its program.
  explicit HandshakenChild(const std::vector<std::string>& command) {
    std::array<int, 2> from{}, to{};
    if (::pipe(from.data()) != 0 || ::pipe(to.data()) != 0)
      throw_errno("pipe", errno);
    ::setenv("PE_HANDSHAKE", fmt::format("{},{}", from[1], to[0]).c_str(), 1);
    // A copy of our writing end in the child would keep the child from ending.
    ::fcntl(to[1], F_SETFD, FD_CLOEXEC);
    from_ = Fd(from[0]);
    to_ = Fd(to[1]);
    const Fd theirs_out(from[1]), theirs_in(to[0]);
    child_.emplace(Child::start(command, 2, SignalState::now()));
  }

  [[nodiscard]] pid_t pid() const { return child_->pid(); }
  /// Lets the child execute its program, and waits until the program is ready.
  void start() {
    child_->go();
    char byte = 0;
    if (::read(from_.get(), &byte, 1) != 1)
      throw Error("the command ended before it was ready");
  }
  /// Lets the child do its work, and returns its report.  Calls `meanwhile`, if there is one, again
  /// and again.  Otherwise nothing takes the CPU from the child.
  std::string work(const std::function<void()>& meanwhile = {}) {
    if (::write(to_.get(), "\n", 1) != 1)
      throw_errno("pipe", errno);
    const int every_ms = meanwhile ? 10 : -1;
    for (pollfd report{from_.get(), POLLIN, 0}; ::poll(&report, 1, every_ms) == 0;)
      meanwhile();
    std::array<char, 512> text{};
    const auto bytes = ::read(from_.get(), text.data(), text.size());
    if (bytes <= 0)
      throw Error("the command ended before it was done");
    return {text.data(), static_cast<std::size_t>(bytes)};
  }
  /// Lets the child end; returns its status.
  int finish() {
    to_.close();
    for (;;)
      if (const auto status = child_->poll_status())
        return *status;
      else
        ::usleep(1000);
  }

 private:
  Fd from_, to_;
  std::optional<Child> child_;
};

}  // namespace pe::testing
