// When to come to an end: standard input has ended, or a signal came; and how long there is then.
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <optional>

#include "base/cli/stop_signals.h"

namespace pe::push {

class Ending {
 public:
  using Clock = std::chrono::steady_clock;

  /// `follow_fd` is read, whatever comes, and its end is the beginning of ours; -1: there is none.
  /// From then on there is `patience`; a second signal leaves none.
  Ending(int follow_fd, std::chrono::milliseconds patience)
      : follow_fd_(follow_fd), patience_(patience) {}

  [[nodiscard]] bool has_begun() {
    look(std::chrono::milliseconds(0));
    return over_at_.has_value();
  }
  /// There is no time left.
  [[nodiscard]] bool is_over() { return has_begun() && Clock::now() >= *over_at_; }

  /// Until so much time has passed, or the end begins.
  void wait(std::chrono::milliseconds time);

 private:
  void look(std::chrono::milliseconds time);
  void begin();

  int follow_fd_;
  std::chrono::milliseconds patience_;
  StopSignals signals_;
  std::optional<Clock::time_point> over_at_;
};

}  // namespace pe::push
