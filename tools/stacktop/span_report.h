// Reads the calls in a sample stream (pe-record --span): how long they took, on and off the CPUs.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/io/input.h"
#include "stacktop/options.h"
#include "stream/session.h"
#include "stream/spans.h"

namespace pe::stacktop {

// Collects durations and returns their percentiles, in constant memory.
//
// A duration is counted in a class whose limits are less than 1 % apart.

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

/// The calls of a function.
struct SpanLine {
  std::string function;
  stream::SpanCounts counts;
  Durations durations;         ///< of calls that have ended
  std::uint64_t total_ns = 0;  ///< of calls whose length is known; an open one lasts to the end
  std::uint64_t sampled_ns = 0, waited_ns = 0;  ///< in these, by samples and waits
};

struct SpanReport {
  std::vector<SpanLine> lines;  ///< those with the longest total are first
  bool has_samples = false;     ///< the stream has an event that samples CPU time
  bool has_waits = false;       ///< the stream has an event of waits
  std::uint64_t malformed = 0;  ///< entries and returns
  stream::Counts losses;
  std::string damage;  ///< why the input ended early; empty if it did not
};

/// Returns the time on the CPU: by samples, or what waits leave of the total; nullopt if unknown.
std::optional<std::uint64_t> on_cpu_ns(const SpanReport& report, const SpanLine& line);
/// Returns the rest of the total, or the time of waits.
std::optional<std::uint64_t> off_cpu_ns(const SpanReport& report, const SpanLine& line);

/// Throws Error if the input is not a sample stream, or has no calls.
SpanReport read_spans(Input& input);

void write_spans(const SpanReport& report, const Options& options, Output& out);

}  // namespace pe::stacktop
