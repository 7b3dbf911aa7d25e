// When a thread's next sample is due, and how much CPU time it stands for.
//
// A thread that is looked at every q nanoseconds of the clock, and found running, may have had all
// of that time or, where others want the CPU too, a small part of it.  So each look adds what CPU
// time it has really had; a sample is due where that makes up at least half of q, and takes q away.
// Then the number of samples is the CPU time in units of q, whatever the machine's load.
//
// A thread begins with a credit, for a thread that lives shorter than q must not always be passed
// over, and the kernel's figure is up to kLagNs old while a thread runs.  What a thread has had
// beyond kMostPeriods, because it was seldom found running, its next sample stands for.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

namespace pe::record {

class CpuCredit {
 public:
  explicit CpuCredit(std::uint64_t period_ns)
      : balance_ns_(static_cast<std::int64_t>(kLagNs + period_ns)) {}

  /// It has had so much more CPU time.
  void add(std::uint64_t cpu_ns) noexcept { balance_ns_ += static_cast<std::int64_t>(cpu_ns); }
  [[nodiscard]] bool is_due(std::uint64_t period_ns) const noexcept {
    return balance_ns_ >= static_cast<std::int64_t>(period_ns / 2);
  }
  /// A sample was taken: how much CPU time it stands for.
  std::uint64_t take(std::uint64_t period_ns) noexcept {
    const auto period = static_cast<std::int64_t>(period_ns);
    const std::int64_t most = static_cast<std::int64_t>(kLagNs) + kMostPeriods * period;
    const std::int64_t taken = period + std::max<std::int64_t>(0, balance_ns_ - period - most);
    balance_ns_ -= taken;
    return static_cast<std::uint64_t>(taken);
  }

  /// The longest that the kernel's figure of a running thread lags behind: a tick at 100 Hz.
  static constexpr std::uint64_t kLagNs = 10'000'000;
  static constexpr std::int64_t kMostPeriods = 8;

 private:
  std::int64_t balance_ns_;
};

}  // namespace pe::record
