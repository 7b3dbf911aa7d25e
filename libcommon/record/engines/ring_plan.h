// How large the rings are, how much of each stack goes into them, and when they wake us.
//
// A stack copy of 64 KiB reaches the root of nearly every stack, but the ring reserves that room
// for each sample, and what rings may lock in memory is limited (perf_event_mlock_kb and ulimit -l;
// perf_event_open(2)).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "record/request.h"

namespace pe::record {

struct RingPlan {
  std::size_t pages = 0;              ///< of each CPU's ring, a power of two
  std::uint32_t stack_bytes = 0;      ///< of each copy; 0: none are made
  std::uint32_t watermark_bytes = 0;  ///< of a ring, that wake us

  [[nodiscard]] std::size_t ring_bytes() const noexcept;
  /// Of the rings of PERF_RECORD_SWITCH, where they are separate (Request::with_switches): a
  /// quarter, which holds some hundred times as many switches as the other holds samples.
  [[nodiscard]] std::size_t switch_pages() const noexcept;
  [[nodiscard]] std::size_t switch_ring_bytes() const noexcept;
};

/// What we would like to have on `cpus` CPUs.
RingPlan first_plan(const Request& request, std::size_t cpus);
/// The same with rings half as large; nullopt if that makes no sense, or the user chose their size.
std::optional<RingPlan> smaller_plan(const RingPlan& plan, const Request& request,
                                     std::size_t cpus);

/// Are stacks copied at all?
bool copies_stacks(const Request& request) noexcept;

}  // namespace pe::record
