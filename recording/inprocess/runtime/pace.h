// Selects the signals of a thread's timer that become samples.
//
// The kernel checks CPU-time timers only when its clock ticks, so samples are a whole number of
// ticks apart.  A program that works in steps of some ticks would always be sampled at the same
// steps.  So the timer expires at each tick, and one signal at a random place in each period
// becomes a sample.  The handler needs no system call for this: a program may have forbidden itself
// nearly all (seccomp).
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

namespace pe::inprocess {

class Pace {
 public:
  /// Works in zeroed memory.  `interval_ns` is the timer's interval, at most `period_ns`.  `seed`
  /// is any number.
  void start(std::uint64_t period_ns, std::uint64_t interval_ns, std::uint64_t seed) noexcept {
    *this = {};
    period_ns_ = period_ns;
    interval_ns_ = interval_ns;
    random_ = seed | 1;
    target_ns_ = random_in_period();
  }

  /// Call this when the timer has expired `times` times.  Returns how many periods to count now,
  /// mostly 0 or 1.
  std::uint32_t advance(std::uint32_t times) noexcept {
    elapsed_ns_ += std::uint64_t{times} * interval_ns_;
    if (interval_ns_ == period_ns_)
      return times;
    if (elapsed_ns_ < target_ns_)
      return 0;
    const std::uint64_t reached = elapsed_ns_ / period_ns_;
    const std::uint64_t before = period_;
    period_ = std::max(period_ + 1, reached);
    target_ns_ = period_ * period_ns_ + random_in_period();
    return static_cast<std::uint32_t>(period_ - before);
  }

 private:
  /// xorshift64, Marsaglia 2003
  std::uint64_t random_in_period() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % period_ns_;
  }

  std::uint64_t period_ns_, interval_ns_;
  std::uint64_t elapsed_ns_;
  std::uint64_t period_;     ///< the period that the next sample represents
  std::uint64_t target_ns_;  ///< when the next sample is due
  std::uint64_t random_;
};

}  // namespace pe::inprocess
