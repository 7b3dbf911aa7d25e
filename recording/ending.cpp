// SPDX-License-Identifier: MIT
#include "recording/ending.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace pe::recording {
namespace {

/// Signals this soon after the end have the same cause.  For example, timeout(1) sends two, to us
/// and to our group.  A Ctrl-C that ends the command also reaches us.
constexpr std::uint64_t kSameSignalNs = 500'000'000;
constexpr std::uint64_t kStallNs = kNsPerSecond;

}  // namespace

std::optional<std::uint64_t> Ending::left_ns() const {
  if (!duration_ns_ || began_ns_ == 0)
    return std::nullopt;
  const std::uint64_t passed_ns = monotonic_ns() - began_ns_;
  return *duration_ns_ - std::min(passed_ns, *duration_ns_);
}

void Ending::stop() {
  if (const auto stop = std::exchange(stop_, nullptr))
    stop();
  if (stopped_ns_ != 0)
    return;
  stopped_ns_ = monotonic_ns();
  while (signals_.take()) {
  }
}

void Ending::end_by(Ended why) {
  ended_ = why;
  stop();
}

bool Ending::has_signal() const {
  pollfd polled{signals_.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

void Ending::note_check() {
  if (stopped_ns_ != 0)
    return;
  const std::uint64_t cpu_ns = own_cpu_ns();
  if (checked_cpu_ns_ != 0)
    longest_ns_ = std::max(longest_ns_, cpu_ns - checked_cpu_ns_);
  checked_cpu_ns_ = cpu_ns;
}

bool Ending::is_stopped_by_signal() {
  note_check();
  if (!ended_)
    if (const auto signal = signals_.take(); signal && (!bears_ || !bears_(*signal)))
      end_by(Ended::kSignal);
  return ended_ == Ended::kSignal;
}

bool Ending::is_over_time() {
  if (!ended_ && left_ns() == 0U)
    end_by(Ended::kDuration);
  return ended_ == Ended::kDuration;
}

void Ending::look() {
  if (stopped_ns_ != 0)
    return;
  (void)is_stopped_by_signal();
  (void)is_over_time();
}

void Ending::look_while_waiting() {
  if (stopped_ns_ == 0)
    return look();
  const std::uint64_t since_ns = monotonic_ns() - stopped_ns_;
  if (since_ns >= kStallNs)
    if (const auto tell = std::exchange(tell_stall_, nullptr))
      tell();
  if (signals_.take() && since_ns >= kSameSignalNs)
    was_cut_off_ = true;
}

/// Returns the timeout for poll(2).
int Ending::patience_ms() const {
  static constexpr std::uint64_t kLongestMs = 3'600'000;
  const auto rounded_up_ms = [](std::uint64_t ns) {
    return static_cast<int>(std::min(ns / kNsPerMs + 1, kLongestMs));
  };
  if (stopped_ns_ != 0 && tell_stall_)
    return rounded_up_ms(kStallNs - std::min(kStallNs, monotonic_ns() - stopped_ns_));
  const auto left = stopped_ns_ == 0 ? left_ns() : std::nullopt;
  return left ? rounded_up_ms(*left) : -1;
}

bool Ending::wait_for_room(int fd) {
  while (!was_cut_off_) {
    pollfd polled[]{{fd, POLLOUT, 0}, {signals_.fd(), POLLIN, 0}};
    ::poll(polled, std::size(polled), patience_ms());
    if (polled[0].revents != 0)  // write(2) will report any error
      return true;
    look_while_waiting();
  }
  return false;
}

}  // namespace pe::recording
