// Decides when a thread's next sample is due, and how much CPU time that sample represents.
//
// A thread is checked every q nanoseconds of the clock.  If it runs at that time, it may have had
// the CPU all the time, or for a small part if others compete for it.  So each check adds the CPU
// time that the thread has really had.  A sample is due if the sum is at least half of q, and costs
// q.  So the number of samples is the CPU time in units of q, at any load of the machine.
//
// A thread starts with a credit of q, so that threads that live for less are not always missed.  It
// also makes up for the end of a program, where no thread can be stopped.  While a thread runs, the
// kernel's figure is up to kLagNs old, but not older than the time when we last had its CPU.  So we
// occupy the CPU of a thread that may be due.  That makes the figure exact, and the thread is
// stopped only if it is due.
// (An initial credit of kLagNs charged short programs for 1.3 to 1.9 times the CPU time that they
// had had.)  A thread that was seldom found running may have had more than kMostPeriods.  Its next
// sample also represents the excess.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

namespace pe::recording {

class CpuCredit {
 public:
  explicit CpuCredit(std::uint64_t period_ns) : balance_ns_(static_cast<std::int64_t>(period_ns)) {}

  /// Adds CPU time that the thread has had.
  void add(std::uint64_t cpu_ns) noexcept { balance_ns_ += static_cast<std::int64_t>(cpu_ns); }
  /// `unseen_ns` is the CPU time that the thread may have had and add() has not received.
  [[nodiscard]] bool is_due(std::uint64_t period_ns, std::uint64_t unseen_ns = 0) const noexcept {
    return balance_ns_ + static_cast<std::int64_t>(std::min(unseen_ns, kLagNs)) >=
           static_cast<std::int64_t>(period_ns / 2);
  }
  /// Charges a sample.  Returns the CPU time that it represents.
  std::uint64_t take(std::uint64_t period_ns) noexcept {
    const auto period = static_cast<std::int64_t>(period_ns);
    const std::int64_t most = static_cast<std::int64_t>(kLagNs) + kMostPeriods * period;
    const std::int64_t taken = period + std::max<std::int64_t>(0, balance_ns_ - period - most);
    balance_ns_ -= taken;
    return static_cast<std::uint64_t>(taken);
  }

  /// The maximum age of the kernel's figure for a running thread: a tick at 100 Hz.
  static constexpr std::uint64_t kLagNs = 10'000'000;
  static constexpr std::int64_t kMostPeriods = 8;

 private:
  std::int64_t balance_ns_;
};

}  // namespace pe::recording
