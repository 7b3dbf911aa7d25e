// A child that waits until it is told to begin, and until it may end (tests/data/src/off_cpu.cpp).
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/cli/child.h"
#include "base/error.h"
#include "base/fd.h"

namespace pe::testing {

class HandshakenChild {
 public:
  /// Held before its program.
  explicit HandshakenChild(const std::vector<std::string>& command) {
    std::array<int, 2> from{}, to{};
    if (::pipe(from.data()) != 0 || ::pipe(to.data()) != 0)
      throw_errno("pipe", errno);
    ::setenv("PE_HANDSHAKE", fmt::format("{},{}", from[1], to[0]).c_str(), 1);
    // Its own copy of the end that we write to would keep it from ending.
    ::fcntl(to[1], F_SETFD, FD_CLOEXEC);
    from_ = Fd(from[0]);
    to_ = Fd(to[1]);
    const Fd theirs_out(from[1]), theirs_in(to[0]);
    child_.emplace(Child::start(command, 2, SignalState::now()));
  }

  [[nodiscard]] pid_t pid() const { return child_->pid(); }
  /// Lets it begin its program and waits until that is ready.
  void start() {
    child_->go();
    char byte = 0;
    if (::read(from_.get(), &byte, 1) != 1)
      throw Error("the command ended before it was ready");
  }
  /// Lets it work, and returns what it has to say about that.
  std::string work() {
    if (::write(to_.get(), "\n", 1) != 1)
      throw_errno("pipe", errno);
    std::array<char, 512> text{};
    const auto bytes = ::read(from_.get(), text.data(), text.size());
    if (bytes <= 0)
      throw Error("the command ended before it was done");
    return {text.data(), static_cast<std::size_t>(bytes)};
  }
  /// Lets it end; its status.
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
