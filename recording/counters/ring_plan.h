// Plans the size of the rings, the part of each stack that goes into them, and when they wake us.
//
// A stack copy of 64 KiB reaches the root of nearly every stack, but the ring reserves that room
// for each sample.  The memory that rings may lock is limited (perf_event_mlock_kb and ulimit -l;
// perf_event_open(2)).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "recording/request.h"

namespace pe::recording {

struct RingPlan {
  std::size_t pages = 0;              ///< of each CPU's ring, a power of two
  std::uint32_t stack_bytes = 0;      ///< of each copy; 0: no copies
  std::uint32_t watermark_bytes = 0;  ///< this much in a ring wakes us

  [[nodiscard]] std::size_t ring_bytes() const noexcept;
  /// Returns the size of the separate rings for PERF_RECORD_SWITCH (Request::with_switches): a
  /// quarter.  They hold some hundred times as many switches as the other rings hold samples.
  [[nodiscard]] std::size_t switch_pages() const noexcept;
  [[nodiscard]] std::size_t switch_ring_bytes() const noexcept;
};

/// Returns the preferred plan for `cpus` CPUs.
RingPlan first_plan(const Request& request, std::size_t cpus);
/// Returns a plan with rings half as large; nullopt if they are small already, or the user chose
/// their size.
std::optional<RingPlan> smaller_plan(const RingPlan& plan, const Request& request,
                                     std::size_t cpus);

/// Returns whether stacks are copied at all.
bool copies_stacks(const Request& request) noexcept;

}  // namespace pe::recording
