// Measures how long a target's threads were stopped, and which rate that allows.
//
// A running thread may be stopped for at most kMostStopped of the time.  It is stopped once per
// interval, so the interval is at least the mean stop divided by that share.  A slow machine
// reaches a tenth at 1,000 Hz; at the default 99 Hz it is never reached.  In the same way, the
// recorder's own scans stay below kMostBusy of a CPU.  With thousands of threads, these scans would
// take the target's time.
//
// A stop or scan may take a second because another program has the CPU.  So one far above the mean
// counts as several times the mean: if more follow, a few of them lower the rate.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "recording/ptrace/cpu_credit.h"

namespace pe::recording {

class StopTimes {
 public:
  /// `wanted_ns` is the requested interval between scans.
  explicit StopTimes(std::uint64_t wanted_ns) : wanted_ns_(wanted_ns) {}

  /// `sets_rate` is false for a thread that is stopped far less than once per interval.
  void add_stop(std::uint64_t ns, bool sets_rate = true) noexcept {
    ++stops_;
    total_ns_ += ns;
    longest_ns_ = std::max(longest_ns_, ns);
    if (sets_rate)
      mean_stop_ns_ = moved(mean_stop_ns_, ns, ++rating_stops_);
  }
  /// Adds a stop without a sample.
  void add_vain_stop(std::uint64_t ns) noexcept {
    ++vain_stops_;
    add_stop(ns, false);
  }
  /// Adds time for which a thread was ready, but had no CPU.
  void add_wait(std::uint64_t ns) noexcept { waited_ns_ += ns; }
  /// Adds a scan of all threads, which took us `ns` of CPU time.
  void add_round(std::uint64_t ns) noexcept {
    ++rounds_;
    mean_round_ns_ = moved(mean_round_ns_, ns, rounds_);
  }
  /// Returns the shortest allowed interval between scans.
  [[nodiscard]] std::uint64_t interval_ns() const noexcept {
    return std::max({wanted_ns_, static_cast<std::uint64_t>(mean_stop_ns_ / kMostStopped),
                     static_cast<std::uint64_t>(mean_round_ns_ / kMostBusy)});
  }

  /// Returns whether scans alone make that interval so long that threads which ran at the last scan
  /// do no longer.
  [[nodiscard]] bool is_crowded() const noexcept { return mean_round_ns_ / kMostBusy >= kLongNs; }
  [[nodiscard]] double mean_scan_ns() const noexcept { return mean_round_ns_; }

  [[nodiscard]] std::uint64_t stops() const noexcept { return stops_; }
  [[nodiscard]] std::uint64_t vain_stops() const noexcept { return vain_stops_; }
  [[nodiscard]] std::uint64_t total_ns() const noexcept { return total_ns_; }
  [[nodiscard]] std::uint64_t waited_ns() const noexcept { return waited_ns_; }
  [[nodiscard]] std::uint64_t longest_ns() const noexcept { return longest_ns_; }

  static constexpr double kMostStopped = 0.1, kMostBusy = 0.25;
  static constexpr double kLongNs = CpuCredit::kLagNs;

 private:
  /// Returns the mean of `count` values, `ns` the last; of more than kMost, the last ones count
  /// most.
  static double moved(double mean, std::uint64_t ns, std::uint64_t count) noexcept {
    constexpr std::uint64_t kMost = 128;
    constexpr double kUsualNs = 1e6, kMostTimes = 8;
    const double value = std::min(static_cast<double>(ns), kMostTimes * std::max(mean, kUsualNs));
    return mean + (value - mean) / static_cast<double>(std::min(count, kMost));
  }

  std::uint64_t wanted_ns_;
  std::uint64_t stops_ = 0, rating_stops_ = 0, vain_stops_ = 0, rounds_ = 0;
  std::uint64_t total_ns_ = 0, longest_ns_ = 0, waited_ns_ = 0;
  double mean_stop_ns_ = 0, mean_round_ns_ = 0;
};

}  // namespace pe::recording
