// How long to wait before a server that did not take a profile is asked again.
//
// Twice as long after each failure, up to a limit, and by chance between half of that and all of
// it, so that many who lost the same server do not come back at once.  A server's own wish
// (Retry-After, RFC 9110, 10.2.3) counts where it is longer, within reason.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>

namespace pe::push {

class Backoff {
 public:
  using Time = std::chrono::milliseconds;
  static constexpr Time kFirst = std::chrono::seconds(1);
  static constexpr Time kMost = std::chrono::minutes(5);
  static constexpr Time kMostAsked = std::chrono::hours(1);  ///< of what a server wishes

  explicit Backoff(std::random_device::result_type seed) : random_(seed) {}

  /// After one more failure in a row; `asked` is what the server wishes.
  Time next(std::optional<std::chrono::seconds> asked) {
    const Time own = by_chance(step_);
    step_ = std::min(step_ * 2, kMost);
    if (!asked || *asked <= std::chrono::seconds(0))
      return own;
    const Time wished =
        std::min<Time>(std::min<std::chrono::seconds>(*asked, kMostAskedSeconds), kMostAsked);
    return std::max(own, wished + by_chance(kFirst));
  }

  /// After a success.
  void reset() { step_ = kFirst; }

 private:
  static constexpr auto kMostAskedSeconds =
      std::chrono::duration_cast<std::chrono::seconds>(kMostAsked);

  /// From half of it to all of it.
  Time by_chance(Time time) {
    std::uniform_int_distribution<Time::rep> between(time.count() / 2, time.count());
    return Time(between(random_));
  }

  std::minstd_rand random_;
  Time step_ = kFirst;
};

}  // namespace pe::push
