// Collects durations and returns their percentiles, in constant memory.
//
// A duration is counted in a class whose limits are less than 1 % apart.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pe::stacktop {

class Durations {
 public:
  void add(std::uint64_t ns) {
    const std::size_t place = place_of(ns);
    if (counts_.size() <= place)
      counts_.resize(place + 1);
    ++counts_[place];
    ++count_;
    longest_ns_ = std::max(longest_ns_, ns);
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t longest_ns() const noexcept { return longest_ns_; }

  /// Returns the duration that `percent` of the durations do not exceed, at most 1 % too long;
  /// 0 if there are none.
  [[nodiscard]] std::uint64_t percentile_ns(unsigned percent) const {
    constexpr std::uint64_t kAll = 100;
    // Rounds up, without an overflow.
    const std::uint64_t rank =
        count_ / kAll * percent + (count_ % kAll * percent + kAll - 1) / kAll;
    std::uint64_t seen = 0;
    for (std::size_t place = 0; place < counts_.size(); ++place) {
      seen += counts_[place];
      if (seen >= rank && seen > 0)
        return std::min(longest_ns_, last_ns(place));
    }
    return 0;
  }

 private:
  /// The classes of each power of two; durations below two times as much have their own class.
  static constexpr unsigned kBits = 7;
  static constexpr std::uint64_t kClasses = std::uint64_t{1} << kBits;

  static std::size_t place_of(std::uint64_t ns) {
    const unsigned shift =
        ns < 2 * kClasses ? 0 : static_cast<unsigned>(std::bit_width(ns)) - kBits - 1;
    return static_cast<std::size_t>(shift * kClasses + (ns >> shift));
  }
  /// Returns the longest duration of a class.
  static std::uint64_t last_ns(std::size_t place) {
    const auto shift = static_cast<unsigned>(place < 2 * kClasses ? 0 : place / kClasses - 1);
    return ((place - shift * kClasses + 1) << shift) - 1;
  }

  std::vector<std::uint64_t> counts_;  ///< at most 7,424 classes
  std::uint64_t count_ = 0, longest_ns_ = 0;
};

}  // namespace pe::stacktop
