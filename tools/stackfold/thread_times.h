// How long the threads of a recording of CPU time and waits ran, and what they waited for, as facts
// of folded text (folded(5)).
//
// Times of waits are exact.  Where the time is known in which no thread ran, some thread ran in the
// rest, and samples only have to show how many threads did: the CPU time is that rest, times the
// average number.  For a program with one thread, that is exact.  Where that time is not known, CPU
// time is the sum of the samples' periods.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "stream/records/record.h"
#include "stream/records/sample.h"

namespace pe::fold {

/// Returns "1.234 s".
std::string seconds_text(double ns);

/// Times in nanoseconds, by what threads did.
struct KindTimes {
  double cpu_ns = 0;
  std::array<double, stream::kWaitKinds> wait_ns = {};

  /// Adds a sample of this event; ignores those of other events.
  void add(const stream::Sample& sample, std::string_view event);
  void add(const KindTimes& times);
  [[nodiscard]] double waited_ns() const;
  /// Returns those that are not 0, as "CPU 0.934 s, lock 0.600 s".
  [[nodiscard]] std::string text() const;
  /// Appends those that are not 0 to facts, as lines.
  void append_to(std::string& facts) const;
};

class ThreadTimes {
 public:
  /// Adds a sample of this event; ignores those of other events.
  void add(const stream::Sample& sample, std::string_view event);
  /// Appends the facts that are known, as lines.
  void append_to(std::string& facts) const;

 private:
  /// Returns the time in which a thread ran; 0: that is not known.
  [[nodiscard]] double busy_ns() const noexcept;
  /// Returns the average number of threads that ran while any did.
  [[nodiscard]] double parallelism() const noexcept;

  KindTimes times_;       ///< the time on CPUs is that of samples
  double clock_ns_ = 0;   ///< the part of the clock that these represent
  double whole_ns_ = 0;   ///< of the recording; 0: unknown
  double silent_ns_ = 0;  ///< of it: no thread ran
};

}  // namespace pe::fold
