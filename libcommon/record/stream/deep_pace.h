// How soon the rings should be looked at again, so that the rest of a deep stack is found in its
// process while it still stands.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "stream/records/sample.h"

namespace pe::record {

class DeepPace {
 public:
  explicit DeepPace(const perf_event_attr& attr);

  /// Takes in a sample that has just come, of whose copy the thread's stack takes `used_bytes`.
  void see(const stream::Sample& sample, std::size_t used_bytes) noexcept;
  /// In how many nanoseconds to look, counted from `now_ns`, if the last stacks were nearly as deep
  /// as their copies; nullopt: there is no hurry.
  [[nodiscard]] std::optional<std::uint64_t> wait_ns(std::uint64_t now_ns) const noexcept;

 private:
  std::uint64_t period_ns_;
  std::uint64_t last_ns_ = 0;       ///< of the last sample
  std::uint64_t last_deep_ns_ = 0;  ///< of the last whose stack nearly filled its copy
};

}  // namespace pe::record
