// How much of the targets' memory is read: at most kBytesPerSecond, of all of them together.
//
// A stack that its copy cuts is continued from the process, and code without tables is read there.
// What that costs depends on the program: stacks of a megabyte, goroutines, a thousand samples a
// second.  Beyond the budget nothing is read, and that is counted.  Reading 1 MiB takes some 0.1
// ms; keeping it for its sample costs more.  All of the budget is half of a CPU (measured: stacks
// of 5 MiB at 997 Hz, Linux 6.18).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace pe::record {

class MemoryBudget {
 public:
  /// Whether something may be read now; counts if not.
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
  /// Takes from the budget what has been read.
  void spend(std::size_t bytes) noexcept {
    spent_bytes_ += bytes;
    read_bytes_ += bytes;
  }

  /// How often nothing was read for want of budget.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  /// All that was read.
  [[nodiscard]] std::uint64_t read_bytes() const noexcept { return read_bytes_; }

  static constexpr std::uint64_t kBytesPerSecond = std::uint64_t{512} << 20;

 private:
  std::uint64_t last_ns_ = 0, spent_bytes_ = 0;
  std::uint64_t refused_ = 0, read_bytes_ = 0;
};

}  // namespace pe::record
