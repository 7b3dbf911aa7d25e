// Walks the call chain of a sample, frame by frame, leaf first.
//
// The kernel writes a list of addresses with marks between them that show the owner of the
// following addresses (PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER; perf_event_open(2)).  A second mark
// of the same kind changes nothing here; pe-stream(5) explains its meaning.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "stream/records/sample.h"

namespace pe::stream {

struct CallChainEntry {
  /// The address to look up symbols for.  For the first frame of the kernel's and of the user's
  /// part, it is the instruction pointer.  For the others, it is one byte before the return
  /// address: otherwise a call at the very end of a function would belong to the next function.
  std::uint64_t lookup_address = 0;
  bool is_kernel = false;
};

namespace detail {

/// The owner of the addresses after a mark.
enum class ChainPart { kUser, kKernel, kOther };

inline ChainPart part_of_mark(std::uint64_t mark) {
  switch (static_cast<std::int64_t>(mark)) {
    case static_cast<std::int64_t>(PERF_CONTEXT_USER):
      return ChainPart::kUser;
    case static_cast<std::int64_t>(PERF_CONTEXT_KERNEL):
      return ChainPart::kKernel;
    default:
      return ChainPart::kOther;  // a guest's or a hypervisor's: no symbols available
  }
}

}  // namespace detail

/// Calls `on_frame(CallChainEntry)` for every frame.  A sample of an event without call chains has
/// one frame, its instruction pointer; a sample with an empty chain has none.
template <typename OnFrame>
void for_each_frame(const Sample& sample, std::uint16_t misc, OnFrame&& on_frame) {
  const bool in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  if (!sample.has_callchain) {
    on_frame(CallChainEntry{sample.ip, in_kernel});
    return;
  }
  auto part = in_kernel ? detail::ChainPart::kKernel : detail::ChainPart::kUser;
  bool is_first = true;
  for (std::size_t i = 0; i < sample.callchain.size(); ++i) {
    const std::uint64_t address = sample.callchain[i];
    if (address >= static_cast<std::uint64_t>(PERF_CONTEXT_MAX)) {
      const auto marked = detail::part_of_mark(address);
      is_first = is_first || marked != part;
      part = marked;
      continue;
    }
    if (part != detail::ChainPart::kOther)
      on_frame(CallChainEntry{address - (is_first || address == 0 ? 0 : 1),
                              part == detail::ChainPart::kKernel});
    is_first = false;
  }
}

}  // namespace pe::stream
