// Converts samples of the kernel's unwinder to PERF_RECORD_SAMPLE records, as the kernel would have
// written them (perf_event_open(2)).  A record has a call chain if the kernel has walked the stack.
// Otherwise it has the registers and the piece of the stack that the kernel passed on.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "recording/bpf/bpf_object.h"
#include "stream/stream_writer.h"
#include "unwind/walk/frame.h"

namespace pe::recording {

class KernelSamples {
 public:
  /// `attr` is the layout that counters.h requests, with copies of stacks.
  explicit KernelSamples(const perf_event_attr& attr) : attr_(attr) {}

  /// Returns the record; the sample's `cookie` is its event's id.  Valid until the next call.
  stream::Record record_of(const unwind::Sample& sample);

  /// Returns the user's frames of the last sample; empty if the kernel passed its stack on.
  [[nodiscard]] const std::vector<unwind::Frame>& frames() const noexcept { return frames_; }

 private:
  void add_call_chain(const unwind::Sample& sample);
  void add_copy(const unwind::Sample& sample);

  perf_event_attr attr_;
  stream::RecordBuilder builder_;
  std::vector<unwind::Frame> frames_;
  std::vector<std::uint64_t> chain_;
};

}  // namespace pe::recording
