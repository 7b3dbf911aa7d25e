// Decides how soon the rings should be polled again, so that the rest of a deep stack is still
// found in its process.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "stream/records/sample.h"

namespace pe::recording {

class DeepPace {
 public:
  explicit DeepPace(const perf_event_attr& attr);

  /// Accepts a sample that has just arrived; the thread's stack occupies `used_bytes` of its copy.
  void see(const stream::Sample& sample, std::size_t used_bytes) noexcept;
  /// Returns the nanoseconds from `now_ns` to the next poll, if the last stacks were nearly as deep
  /// as their copies; nullopt if there is no hurry.
  [[nodiscard]] std::optional<std::uint64_t> wait_ns(std::uint64_t now_ns) const noexcept;

 private:
  std::uint64_t period_ns_;
  std::uint64_t last_ns_ = 0;       ///< of the last sample
  std::uint64_t last_deep_ns_ = 0;  ///< of the last one whose stack nearly filled its copy
};

}  // namespace pe::recording
